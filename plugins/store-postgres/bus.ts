// The bus in PostgreSQL. Messages are rows in tables; NOTIFY wakes the nodes. A text goes to all nodes, a letter to one node.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Client } from 'pg'
import { errorText, type Logger } from '../../core/plugin.ts'
import type { Bus } from '../../core/store.ts'
import { storeUnavailable, withTimeout } from '../../core/transport.ts'
import { type Postgres, TIMEOUT } from './connection.ts'

const KEPT = 10_000
/** Maximum texts and letters per call. */
const BATCH = 500
const MAX_WAITING = 10_000
/** Interval of heartbeats, and delay of retries, milliseconds. */
const INTERVAL = { beat: 5_000, retry: 250 }
/** Milliseconds for which the state of a node is cached. */
const CACHE_TIME = 1_000
/** Milliseconds after an outage for which silent nodes count as alive. */
const RECOVERY = 10_000

interface Received {
  readonly last: number
  readonly letters: ReadonlyArray<readonly [id: number, text: string]>
  readonly texts: ReadonlyArray<readonly [position: number, text: string]>
}

interface Waiting<Item, Result> {
  readonly item: Item
  resolve(result: Result): void
  reject(error: unknown): void
}

/** Sends items in order. Queued items are sent together in one call. */
function createQueue<Item, Result>(send: (items: readonly Item[]) => Promise<readonly Result[]>, full = () => {}) {
  let waiting: Array<Waiting<Item, Result>> = []
  let isSending = false

  async function sendAll() {
    isSending = true
    // Collects the items of one turn of the event loop.
    await undefined
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      waiting = waiting.slice(BATCH)
      try {
        const results = await send(batch.map(({ item }) => item))
        for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
      } catch (error) {
        for (const { reject } of batch) reject(error)
      }
    }
    isSending = false
  }

  return (item: Item): Promise<Result> =>
    new Promise((resolve, reject) => {
      if (waiting.length >= MAX_WAITING) {
        full()
        return reject(storeUnavailable({ cause: new Error('too many messages are queued for PostgreSQL') }))
      }
      waiting.push({ item, resolve, reject })
      if (!isSending) void sendAll()
    })
}

function rejectLate(): never {
  throw storeUnavailable({ cause: new Error(`PostgreSQL did not respond within ${TIMEOUT} ms`) })
}

export interface PostgresBus extends Bus {
  start(): Promise<void>
}

export function createPostgresBus(postgres: Postgres, node: string, log: Logger): PostgresBus {
  const subscribers = new Set<Parameters<Bus['subscribe']>[0]>()
  const known = new Map<string, { readonly isAlive: boolean; readonly at: number }>()
  /** Received letters that are possibly still stored. */
  let received = new Set<number>()
  let receiver: ((text: string) => void) | undefined
  let position: number | undefined
  let client: Client | undefined
  let wake: () => void = () => undefined
  let lastReceivedAt = performance.now()
  let recoveringUntil = 0
  let hasLeft = false
  /** Texts that were not queued leave a gap in the positions. */
  let hasLost = false

  const isRecovering = () =>
    performance.now() < recoveringUntil || performance.now() - lastReceivedAt > 2 * INTERVAL.beat

  function notifySubscribers(text: string | undefined, at?: string) {
    for (const listener of [...subscribers]) listener(text, at)
  }

  function deliver(text: string) {
    try {
      receiver?.(text)
    } catch (err) {
      log.error({ code: 'MH3505', err }, 'failed to process a message of another node')
    }
  }

  function deliverTexts({ last, texts }: Received) {
    position ??= last
    for (const [at, text] of texts) {
      const isNext = at === position + 1
      position = at
      if (!isNext) notifySubscribers(undefined)
      notifySubscribers(text, String(at))
    }
    // Texts were deleted before they were read, or the database was restored to an earlier state.
    if (texts.length === 0 && last !== position) {
      position = last
      notifySubscribers(undefined)
    }
  }

  /** Receives letters. Returns true if there can be more. */
  async function receive(on: Client): Promise<boolean> {
    const done = [...received]
    const known = position ?? Number.MAX_SAFE_INTEGER
    const answer = (await postgres.callOn(on, 'receive', node, known, done, BATCH)) as Received
    if (isRecovering()) recoveringUntil = performance.now() + RECOVERY
    lastReceivedAt = performance.now()
    received = new Set(answer.letters.map(([id]) => id))
    for (const [id, text] of answer.letters) if (!done.includes(id)) deliver(text)
    // Letters that were sent before a text are delivered before it.
    if (answer.letters.length < BATCH) deliverTexts(answer)
    return answer.letters.length > 0 || answer.texts.length >= BATCH
  }

  async function listen(): Promise<Client> {
    const opened = await postgres.connect()
    opened.on('notification', ({ payload }) => {
      if (payload === '' || payload === node) wake()
    })
    opened.on('end', () => {
      if (client === opened) client = undefined
      wake()
    })
    client = opened
    await opened.query(`LISTEN "${postgres.schema}"`)
    return opened
  }

  /** Receives all stored messages. Returns a promise of the next notification or heartbeat. */
  async function receiveAll(): Promise<{ readonly next: Promise<void> }> {
    const on = client ?? (await listen())
    const next = new Promise<void>(resolve => {
      const timer = setTimeout(resolve, INTERVAL.beat).unref()
      wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    while (await receive(on));
    return { next }
  }

  function drop() {
    client?.end().catch(() => undefined)
    client = undefined
  }

  async function run(first: Promise<void>) {
    await first
    while (!hasLeft) {
      try {
        const { next } = await receiveAll()
        await next
      } catch (err) {
        log.debug({ err }, 'waiting for PostgreSQL to receive messages')
        drop()
        await pause(INTERVAL.retry, undefined, { ref: false })
      }
    }
  }

  /** Retries a batch until it is stored. The token detects a batch that is already stored. */
  async function publishAll(texts: readonly string[]): Promise<readonly undefined[]> {
    const token = randomBytes(12).toString('base64url')
    const gap = hasLost ? 1 : 0
    hasLost = false
    for (;;) {
      try {
        await postgres.call('publish', texts, token, gap, KEPT)
        return []
      } catch (error) {
        if (hasLeft) throw error
        log.debug({ err: error }, 'messages are queued for PostgreSQL')
        await pause(INTERVAL.retry, undefined, { ref: false })
      }
    }
  }

  const enqueue = createQueue(publishAll, () => {
    hasLost = true
  })
  const send = createQueue<readonly [string, string], boolean>(async letters => {
    const { results } = await postgres.callInTime<{ results: boolean[] }>('send', letters, isRecovering())
    return results
  })

  return {
    shared: true,
    node,
    publish: text => withTimeout(enqueue(text), TIMEOUT, rejectLate),
    subscribe(listener) {
      subscribers.add(listener)
      return () => void subscribers.delete(listener)
    },
    get position() {
      return String(position ?? '')
    },
    isAfter: (one, other) => Number(one) > Number(other),
    async since(from) {
      const { last, texts } = (await postgres.call('since', Number(from))) as Received
      const isWhole = last - Number(from) === texts.length
      return isWhole ? texts.map(([at, text]) => ({ text, position: String(at) })) : undefined
    },
    send: (other, text) => send([other, text]),
    receive(listener) {
      receiver = listener
    },
    async isAlive(other) {
      const before = known.get(other)
      if (before && performance.now() - before.at < CACHE_TIME) return before.isAlive
      const isAlive = Boolean(await postgres.call('is_alive', other, isRecovering()))
      if (known.size > 1_000) known.clear()
      known.set(other, { isAlive, at: performance.now() })
      return isAlive
    },
    async leave() {
      if (hasLeft) return
      hasLeft = true
      wake()
      drop()
      if (!postgres.isUp) return
      await postgres
        .call('leave', node)
        .catch(err =>
          log.warn({ code: 'MH3506', reason: errorText(err) }, 'could not notify other nodes of the shutdown'),
        )
    },
    async start() {
      const found = await receiveAll().catch(drop)
      void run(found?.next ?? Promise.resolve())
    },
  }
}
