// A worker's connection to the other workers of its host, through the hub in the primary.
import type { InEveryProcess } from '../../core/host.ts'
import { HostError } from '../../core/index.ts'
import type { Neighbours } from '../../core/slots.ts'
import type { Bus } from '../../core/store.ts'
import {
  type Counted,
  type FromHub,
  FULL,
  isFromPrimary,
  type ToCount,
  type ToHub,
  type WorkerMessage,
} from './message.ts'

/** Response timeout of the hub, milliseconds. */
const ANSWER_TIME = 5_000
/** Value of the `Retry-After` header, seconds. */
const RETRY_AFTER = '2'

interface HubChannel {
  send(message: ToHub): boolean
  receive(listener: (message: FromHub) => void): void
}

const unavailable = (reason: string) =>
  new HostError('unavailable', { reason, headers: { 'Retry-After': RETRY_AFTER } })

interface Question {
  resolve(value: unknown): void
  reject(error: HostError): void
  readonly timer: NodeJS.Timeout
}

type Asked<Message> = Message extends { to: 'gives' }
  ? never
  : Message extends { question: number }
    ? Omit<Message, 'question'>
    : never

const nextTurn = () => new Promise<void>(resolve => setImmediate(resolve))

/** Sends items together that arrive before `turn` resolves. Resolves to the response and the item's index in the batch. */
function createBatch<Item>(turn: () => Promise<void>, send: (items: readonly Item[]) => Promise<unknown>) {
  let open: { readonly items: Item[]; readonly sent: Promise<unknown> } | undefined
  function begin() {
    const items: Item[] = []
    const sent = turn().then(() => {
      open = undefined
      return send(items)
    })
    return { items, sent }
  }
  return async (item: Item) => {
    open ??= begin()
    const { items, sent } = open
    const index = items.push(item) - 1
    return { sent: await sent, index }
  }
}

class HubNeighbours implements Neighbours {
  readonly #answers = new Map<string, () => unknown>()
  readonly #asking = new Map<string, Promise<readonly unknown[]>>()
  readonly #channel: HubChannel
  readonly #questions = new Map<number, Question>()
  readonly #receivers = new Map<string, (text: string) => void>()
  readonly #subscribers = new Set<Parameters<Bus['subscribe']>[0]>()
  /** The number of the last broadcast. Numbers have no gaps. */
  #last = 0
  #asked = 0
  readonly #publish = createBatch(
    async () => {},
    (texts: readonly string[]) => this.#ask({ to: 'tell', texts }),
  )
  readonly #count = createBatch(nextTurn, (counts: readonly ToCount[]) => this.#ask({ to: 'count', counts }))

  constructor(channel: HubChannel) {
    this.#channel = channel
    channel.receive(message => this.#take(message))
    // Subscribes immediately, because a stream that opens before the first subscription needs its position in the
    // broadcasts.
    channel.send({ to: 'hear' })
  }

  #take(message: FromHub) {
    if (message.from === 'place') {
      this.#last = message.number
    } else if (message.from === 'told') {
      for (const [index, text] of message.texts.entries()) {
        this.#last = message.first + index
        this.#deliver(text, String(this.#last))
      }
    } else if (message.from === 'missed') {
      this.#last = message.number
      this.#deliver(undefined)
    } else if (message.from === 'asked') {
      void this.#respond(message.name, message.question).catch(() => undefined)
    } else if (message.from === 'received') {
      this.#receivers.get(message.node)?.(message.text)
    } else {
      this.#answered(message.question, message.value)
    }
  }

  #deliver(text: string | undefined, position?: string) {
    for (const subscriber of [...this.#subscribers]) subscriber(text, position)
  }

  async #respond(name: string, question: number) {
    const answer = this.#answers.get(name)
    if (answer) this.#channel.send({ to: 'gives', question, given: await answer() })
  }

  #answered(number: number, value: unknown) {
    const question = this.#questions.get(number)
    if (!question) return
    this.#questions.delete(number)
    clearTimeout(question.timer)
    question.resolve(value)
  }

  #ask(message: Asked<ToHub>): Promise<unknown> {
    const question = ++this.#asked
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => {
        this.#questions.delete(question)
        reject(unavailable(reason))
      }
      if (!this.#channel.send({ ...message, question } as ToHub)) return fail('the primary process of this host ended')
      const timer = setTimeout(fail, ANSWER_TIME, `the primary of this host did not answer within ${ANSWER_TIME} ms`)
      this.#questions.set(question, { resolve, reject, timer: timer.unref() })
    })
  }

  readonly inEveryProcess: InEveryProcess = (name, own) => {
    // A reload builds a second host to check the config, but the first host keeps serving.
    if (!this.#answers.has(name)) this.#answers.set(name, own)
    const ask = () =>
      this.#ask({ to: 'every', name }).then(
        given => given as unknown[],
        async () => [await own()],
      )
    return () => {
      const asked = this.#asking.get(name) ?? ask().finally(() => this.#asking.delete(name))
      this.#asking.set(name, asked)
      return asked
    }
  }

  async #since(position: string) {
    const first = Number(position) + 1
    const texts = (await this.#ask({ to: 'since', number: first - 1 })) as readonly string[] | undefined
    return texts?.map((text, index) => ({ text, position: String(first + index) }))
  }

  async #send(node: string, text: string, share: string) {
    const sent = await this.#ask({ to: 'send', node, text, share })
    if (sent === FULL) throw unavailable(`the process ${node} has not taken what it was sent before`)
    return sent === true
  }

  /** The bus of all processes of this host. */
  bus(node: string): Bus {
    const lastOf = () => String(this.#last)
    let hasLeft = false
    return {
      shared: 'host',
      node,
      publish: async text => void (await this.#publish(text)),
      subscribe: listener => {
        this.#subscribers.add(listener)
        return () => void this.#subscribers.delete(listener)
      },
      get position() {
        return lastOf()
      },
      isAfter: (one, other) => Number(one) > Number(other),
      since: position => this.#since(position),
      send: (other, text, share) => this.#send(other, text, share),
      receive: listener => {
        this.#receivers.set(node, listener)
        this.#channel.send({ to: 'join', node })
      },
      isAlive: async other => (other === node ? !hasLeft : (await this.#ask({ to: 'has', node: other })) === true),
      leave: async () => {
        if (hasLeft) return
        hasLeft = true
        this.#receivers.delete(node)
        await this.#ask({ to: 'leave', node }).catch(() => undefined)
      },
    }
  }

  /** An arrow function, because the host calls it without `this`. */
  readonly count = async (...one: ToCount) => {
    const { sent, index } = await this.#count(one)
    return (sent as readonly Counted[])[index] as Counted
  }
}

export const createNeighbours = (channel: HubChannel): Neighbours & { readonly inEveryProcess: InEveryProcess } =>
  new HubNeighbours(channel)

export const hubOfPrimary = (): HubChannel => ({
  send(message) {
    if (!process.connected || !process.send) return false
    return process.send({ mcpHost: 'hub', message } satisfies WorkerMessage, () => {}) || process.connected
  },
  receive(listener) {
    process.on('message', message => {
      if (isFromPrimary(message) && message.mcpHost === 'hub') listener(message.message)
    })
  },
})
