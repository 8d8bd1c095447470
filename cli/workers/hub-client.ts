// A worker's connection to the other workers of its host, through the hub in the primary.
import type { InEveryProcess } from '../../core/host.ts'
import { HostError } from '../../core/index.ts'
import type { Neighbours } from '../../core/slots.ts'
import type { Bus } from '../../core/store.ts'
import {
  type CountArguments,
  type CountResult,
  type FromHub,
  FULL,
  isFromPrimary,
  type ToHub,
  type WorkerMessage,
} from './message.ts'

/** Response timeout of the hub, milliseconds. */
const TIMEOUT = 5_000
/** Value of the `Retry-After` header, seconds. */
const RETRY_AFTER = '2'

interface HubChannel {
  send(message: ToHub): boolean
  receive(listener: (message: FromHub) => void): void
}

const unavailableError = (reason: string) =>
  new HostError('unavailable', { reason, headers: { 'Retry-After': RETRY_AFTER } })

interface PendingRequest {
  resolve(value: unknown): void
  reject(error: HostError): void
  readonly timer: NodeJS.Timeout
}

type WithoutId<Message> = Message extends { to: 'response' }
  ? never
  : Message extends { requestId: number }
    ? Omit<Message, 'requestId'>
    : never

const nextTick = () => new Promise<void>(resolve => setImmediate(resolve))

/** Sends items together that arrive before `waitTurn` resolves. Resolves to the response and the item's index in the batch. */
function createBatch<Item>(waitTurn: () => Promise<void>, send: (items: readonly Item[]) => Promise<unknown>) {
  let open: { readonly items: Item[]; readonly sent: Promise<unknown> } | undefined
  function startBatch() {
    const items: Item[] = []
    const sent = waitTurn().then(() => {
      open = undefined
      return send(items)
    })
    return { items, sent }
  }
  return async (item: Item) => {
    open ??= startBatch()
    const { items, sent } = open
    const index = items.push(item) - 1
    return { sent: await sent, index }
  }
}

class HubClient implements Neighbours {
  readonly #responders = new Map<string, () => unknown>()
  readonly #inFlight = new Map<string, Promise<readonly unknown[]>>()
  readonly #channel: HubChannel
  readonly #pending = new Map<number, PendingRequest>()
  readonly #receivers = new Map<string, (text: string) => void>()
  readonly #subscribers = new Set<Parameters<Bus['subscribe']>[0]>()
  /** The number of the last broadcast. Numbers have no gaps. */
  #last = 0
  #lastRequest = 0
  readonly #publish = createBatch(
    async () => {},
    (texts: readonly string[]) => this.#request({ to: 'publish', texts }),
  )
  readonly #count = createBatch(nextTick, (counts: readonly CountArguments[]) => this.#request({ to: 'count', counts }))

  constructor(channel: HubChannel) {
    this.#channel = channel
    channel.receive(message => this.#receive(message))
    // Subscribes immediately, because a stream that opens before the first subscription needs its position in the
    // broadcasts.
    channel.send({ to: 'subscribe' })
  }

  #receive(message: FromHub) {
    if (message.from === 'subscribed') {
      this.#last = message.number
    } else if (message.from === 'broadcast') {
      for (const [index, text] of message.texts.entries()) {
        this.#last = message.first + index
        this.#deliver(text, String(this.#last))
      }
    } else if (message.from === 'missed') {
      this.#last = message.number
      this.#deliver(undefined)
    } else if (message.from === 'request') {
      void this.#respond(message.name, message.requestId).catch(() => undefined)
    } else if (message.from === 'received') {
      this.#receivers.get(message.node)?.(message.text)
    } else {
      this.#settle(message.requestId, message.value)
    }
  }

  #deliver(text: string | undefined, position?: string) {
    for (const subscriber of [...this.#subscribers]) subscriber(text, position)
  }

  async #respond(name: string, requestId: number) {
    const responder = this.#responders.get(name)
    if (responder) this.#channel.send({ to: 'response', requestId, value: await responder() })
  }

  #settle(requestId: number, value: unknown) {
    const request = this.#pending.get(requestId)
    if (!request) return
    this.#pending.delete(requestId)
    clearTimeout(request.timer)
    request.resolve(value)
  }

  #request(message: WithoutId<ToHub>): Promise<unknown> {
    const requestId = ++this.#lastRequest
    return new Promise((resolve, reject) => {
      const fail = (reason: string) => {
        this.#pending.delete(requestId)
        reject(unavailableError(reason))
      }
      if (!this.#channel.send({ ...message, requestId } as ToHub)) return fail('the primary process of this host ended')
      const timer = setTimeout(fail, TIMEOUT, `the primary of this host did not answer within ${TIMEOUT} ms`)
      this.#pending.set(requestId, { resolve, reject, timer: timer.unref() })
    })
  }

  readonly inEveryProcess: InEveryProcess = (name, own) => {
    // A reload builds a second host to check the config, but the first host keeps serving.
    if (!this.#responders.has(name)) this.#responders.set(name, own)
    const request = () =>
      this.#request({ to: 'requestAll', name }).then(
        given => given as unknown[],
        async () => [await own()],
      )
    return () => {
      const pending = this.#inFlight.get(name) ?? request().finally(() => this.#inFlight.delete(name))
      this.#inFlight.set(name, pending)
      return pending
    }
  }

  async #since(position: string) {
    const first = Number(position) + 1
    const texts = (await this.#request({ to: 'since', number: first - 1 })) as readonly string[] | undefined
    return texts?.map((text, index) => ({ text, position: String(first + index) }))
  }

  async #send(node: string, text: string, share: string) {
    const sent = await this.#request({ to: 'send', node, text, share })
    if (sent === FULL) throw unavailableError(`the process ${node} has not taken what it was sent before`)
    return sent === true
  }

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
      isAlive: async other => (other === node ? !hasLeft : (await this.#request({ to: 'has', node: other })) === true),
      leave: async () => {
        if (hasLeft) return
        hasLeft = true
        this.#receivers.delete(node)
        await this.#request({ to: 'leave', node }).catch(() => undefined)
      },
    }
  }

  /** An arrow function, because the host calls it without `this`. */
  readonly count = async (...one: CountArguments) => {
    const { sent, index } = await this.#count(one)
    return (sent as readonly CountResult[])[index] as CountResult
  }
}

export const createHubClient = (channel: HubChannel): Neighbours & { readonly inEveryProcess: InEveryProcess } =>
  new HubClient(channel)

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
