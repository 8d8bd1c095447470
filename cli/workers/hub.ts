// The hub in the primary that connects workers: broadcasts, direct messages, requests to all workers and shared counters. Worker side: hub-client.ts.
import cluster from 'node:cluster'
import type { Logger } from '../../core/kernel/log.ts'
import { isObject } from '../../core/mcp/wire/message.ts'
import { createMemoryCounter, MAX_CALLERS } from '../../plugins/rate-limit/memory-counter.ts'
import {
  type CountArguments,
  type CountResult,
  type FromHub,
  FULL,
  isFromWorker,
  type PrimaryMessage,
  type ToHub,
} from './message.ts'

export interface HubLimits {
  /** Broadcasts kept for late workers. Default 10,000. */
  readonly maxBroadcasts: number
  /** Maximum characters of kept broadcasts. Default 16 million. */
  readonly maxBroadcastSize: number
  /** Maximum characters in transit to one worker. Default 32 million. */
  readonly maxInTransit: number
}

const DEFAULT_LIMITS: HubLimits = { maxBroadcasts: 10_000, maxBroadcastSize: 16_000_000, maxInTransit: 32_000_000 }

/** Response timeout of each worker to a request to all, milliseconds. */
const RESPONSE_TIMEOUT = 2_000

type Send = (message: FromHub, sent: () => void) => void

function createCounts(log?: Logger): (...args: CountArguments) => CountResult {
  const counters = new Map<string, { readonly count: ReturnType<typeof createMemoryCounter>['count']; until: number }>()

  function create(name: string, window: number, now: number) {
    // A reload can rename limits, so expired counters are deleted.
    for (const [old, { until }] of counters) if (until <= now) counters.delete(old)
    const means = 'new callers share counters and can be refused because of others; no caller exceeds the limit'
    const onFull = () =>
      log?.warn(
        { code: 'MH2705', limit: name, callers: MAX_CALLERS, means },
        'a rate limit has no free counters for further callers',
      )
    const counter = { count: createMemoryCounter({ window, onFull }).count, until: 0 }
    counters.set(name, counter)
    return counter
  }

  return (name, window, key) => {
    const now = performance.now()
    const counter = counters.get(name) ?? create(name, window, now)
    counter.until = now + window
    const { used, until } = counter.count(key)
    return { used, left: Math.max(0, until - performance.now()) }
  }
}

/** A limit divided among shares: a share can use at most as much as remains free. */
class Quota {
  readonly #max: number
  readonly #shares = new Map<string, number>()
  taken = 0

  constructor(max: number) {
    this.#max = max
  }

  get isFull(): boolean {
    return this.taken > this.#max
  }

  fits(share: string, size: number): boolean {
    return this.taken === 0 || (this.#shares.get(share) ?? 0) + size <= this.#max - this.taken
  }

  take(share: string, size: number): void {
    this.taken += size
    this.#shares.set(share, (this.#shares.get(share) ?? 0) + size)
  }

  release(share: string, size: number): void {
    this.taken -= size
    const remaining = (this.#shares.get(share) ?? 0) - size
    if (remaining > 0) this.#shares.set(share, remaining)
    else this.#shares.delete(share)
  }
}

const totalLength = (texts: readonly string[]) => texts.reduce((sum, { length }) => sum + length, 0)

function createBacklog({ maxBroadcasts, maxBroadcastSize }: HubLimits, start: number) {
  let texts: string[] = []
  let size = 0
  let last = start
  return {
    get last() {
      return last
    },
    add(added: readonly string[]) {
      texts.push(...added)
      size += totalLength(added)
      last += added.length
      let dropped = 0
      while (texts.length - dropped > maxBroadcasts || size > maxBroadcastSize) size -= texts[dropped++]?.length ?? 0
      if (dropped > 0) texts = texts.slice(dropped)
    },
    since(number: number): readonly string[] | undefined {
      const count = last - number
      if (!(count >= 0 && count <= texts.length)) return undefined
      return texts.slice(texts.length - count)
    },
  }
}

/** The queue to one worker. Limited, because a worker that does not read must not fill the primary's memory. */
class WorkerQueue {
  readonly #send: Send
  readonly #last: () => number
  readonly #inTransit: Quota
  #missed = false

  constructor(send: Send, max: number, last: () => number) {
    this.#send = send
    this.#inTransit = new Quota(max)
    this.#last = last
  }

  fits(share: string, size: number) {
    return !this.#inTransit.isFull && this.#inTransit.fits(share, size)
  }

  send(message: FromHub, size = 0, share = '') {
    this.#inTransit.take(share, size)
    this.#send(message, () => {
      this.#inTransit.release(share, size)
      if (this.#missed && this.#inTransit.taken === 0) {
        this.#missed = false
        this.send({ from: 'missed', number: this.#last() })
      }
    })
  }

  broadcast(first: number, texts: readonly string[], size: number) {
    if (this.#missed || this.#inTransit.isFull) this.#missed = true
    else this.send({ from: 'broadcast', first, texts }, size)
  }
}

type Counts = Readonly<Record<string, number>>

interface Lasting {
  readonly lasting: Counts
}

const hasLasting = (value: unknown): value is Lasting => isObject(value) && isObject(value['lasting'])

/** Counts in `lasting` stay in the total after a worker ends or does not respond. */
export function createLastingCounts() {
  const names = new Map<string, { readonly last: Map<unknown, Counts>; readonly ended: Map<string, number> }>()
  return {
    record(name: string, worker: unknown, value: unknown): void {
      if (!hasLasting(value)) return
      const counts = names.get(name) ?? { last: new Map(), ended: new Map() }
      names.set(name, counts)
      counts.last.set(worker, value.lasting)
    },
    removeWorker(worker: unknown): void {
      for (const { last, ended } of names.values()) {
        for (const [key, value] of Object.entries(last.get(worker) ?? {})) ended.set(key, (ended.get(key) ?? 0) + value)
        last.delete(worker)
      }
    },
    countsExcept(name: string, responded: ReadonlySet<unknown>): Lasting[] {
      const { last = [], ended } = names.get(name) ?? {}
      const missing = [...last].filter(([worker]) => !responded.has(worker)).map(([, lasting]) => ({ lasting }))
      return ended && ended.size > 0 ? [...missing, { lasting: Object.fromEntries(ended) }] : missing
    },
  }
}

/** Requests to all workers. A worker that does not respond within `RESPONSE_TIMEOUT` is left out, except for its lasting counts. */
function createWorkerRequests(workers: ReadonlySet<WorkerQueue>) {
  const openRequests = new Map<number, (worker: WorkerQueue, ...values: unknown[]) => void>()
  const lasting = createLastingCounts()
  let last = 0
  return {
    requestAll(name: string): Promise<readonly unknown[]> {
      const requestId = ++last
      const pending = new Set(workers)
      const responses = new Map<unknown, unknown>()
      return new Promise(resolve => {
        const settle = () => {
          clearTimeout(timer)
          openRequests.delete(requestId)
          resolve([...responses.values(), ...lasting.countsExcept(name, new Set(responses.keys()))])
        }
        const timer = setTimeout(settle, RESPONSE_TIMEOUT)
        openRequests.set(requestId, (worker, ...values) => {
          if (!pending.delete(worker)) return
          if (values.length > 0) {
            responses.set(worker, values[0])
            lasting.record(name, worker, values[0])
          }
          if (pending.size === 0) settle()
        })
        for (const worker of pending) worker.send({ from: 'request', name, requestId })
      })
    },
    receiveResponse: (requestId: number, worker: WorkerQueue, value: unknown) =>
      openRequests.get(requestId)?.(worker, value),
    remove(worker: WorkerQueue) {
      lasting.removeWorker(worker)
      for (const settle of openRequests.values()) settle(worker)
    },
  }
}

/** `start`: the number before the first broadcast. No earlier hub has used it. */
export function createHub(
  start = Date.now() * 1_000,
  limits: Partial<HubLimits> = {},
  count: (...args: CountArguments) => CountResult = createCounts(),
) {
  const options = { ...DEFAULT_LIMITS, ...limits }
  const backlog = createBacklog(options, start)
  const subscribers = new Set<WorkerQueue>()
  const queues = new Map<string, WorkerQueue>()
  const workerRequests = createWorkerRequests(subscribers)

  function broadcast(texts: readonly string[]): true {
    const first = backlog.last + 1
    const size = totalLength(texts)
    backlog.add(texts)
    for (const queue of subscribers) queue.broadcast(first, texts, size)
    return true
  }

  function forward({ node, text, share }: Extract<ToHub, { to: 'send' }>): boolean | typeof FULL {
    const queue = queues.get(node)
    if (!queue) return false
    if (!queue.fits(share, text.length)) return FULL
    queue.send({ from: 'received', node, text }, text.length, share)
    return true
  }

  function removeNode(node: string, queue: WorkerQueue): boolean {
    return queues.get(node) === queue && queues.delete(node)
  }

  function respond(
    message: Exclude<Extract<ToHub, { requestId: number }>, { to: 'requestAll' | 'response' }>,
    queue: WorkerQueue,
  ): unknown {
    if (message.to === 'publish') return broadcast(message.texts)
    if (message.to === 'since') return backlog.since(message.number)
    if (message.to === 'send') return forward(message)
    if (message.to === 'count') return message.counts.map(one => count(...one))
    return message.to === 'has' ? queues.has(message.node) : removeNode(message.node, queue)
  }

  return {
    connect(send: Send) {
      const queue = new WorkerQueue(send, options.maxInTransit, () => backlog.last)
      return {
        receive(message: ToHub) {
          if (message.to === 'subscribe') {
            subscribers.add(queue)
            queue.send({ from: 'subscribed', number: backlog.last })
          } else if (message.to === 'join') {
            queues.set(message.node, queue)
          } else if (message.to === 'response') {
            workerRequests.receiveResponse(message.requestId, queue, message.value)
          } else if (message.to === 'requestAll') {
            const { requestId } = message
            void workerRequests
              .requestAll(message.name)
              .then(value => queue.send({ from: 'response', requestId, value }))
          } else {
            queue.send({ from: 'response', requestId: message.requestId, value: respond(message, queue) })
          }
        },
        remove() {
          subscribers.delete(queue)
          workerRequests.remove(queue)
          for (const node of [...queues.keys()]) removeNode(node, queue)
        },
      }
    },
  }
}

export type Hub = ReturnType<typeof createHub>

export function connectWorkers(log: Logger): void {
  const hub = createHub(undefined, {}, createCounts(log))
  const connections = new Map<number, ReturnType<Hub['connect']>>()
  cluster.on('fork', worker => {
    const connection = hub.connect((message, sent) => {
      if (worker.isConnected()) worker.send({ mcpHost: 'hub', message } satisfies PrimaryMessage, sent)
      else sent()
    })
    connections.set(worker.id, connection)
  })
  cluster.on('message', (worker, message: unknown) => {
    if (isFromWorker(message) && message.mcpHost === 'hub') connections.get(worker.id)?.receive(message.message)
  })
  const removeConnection = ({ id }: { readonly id: number }) => {
    connections.get(id)?.remove()
    connections.delete(id)
  }
  // A worker whose channel breaks counts as ended, even if it hangs.
  cluster.on('disconnect', removeConnection)
  cluster.on('exit', removeConnection)
}
