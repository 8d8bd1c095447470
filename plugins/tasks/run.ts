// One run of a task: the call without its token, and the requests to its client, which are stored.

import { HostError, ToolError } from '../../core/index.ts'
import type { McpRoute, Timer } from '../../core/plugin.ts'
import {
  Cancellation,
  type ClientRequest,
  encodeResponse,
  type InputRequest,
  isValidResponse,
  MODERN_REVISION,
  REQUEST_NAMES,
  type RequestSender,
  type Transport,
} from '../../core/transport.ts'
import {
  hasEnded,
  type TaskEnd,
  type TaskLease,
  type TaskRecord,
  type TaskRequest,
  type TaskStore,
} from '../families/task-store/index.ts'
import { factsOf, failedWith, nodeLost, type Request, type Work } from './records.ts'
import type { TaskSettings } from './tasks.ts'

/** Maximum open requests to the client. */
const MAX_REQUESTS = 100

/** The task was cancelled or has ended, or another node runs it. */
class LeaseLost extends Error {
  constructor() {
    super('the task was cancelled or has ended, or another node runs it')
    this.name = 'LeaseLost'
  }
}

interface HandlerSlot {
  pause(): void
  resume(): Promise<void>
}

class RunRequests implements RequestSender {
  readonly #store: TaskStore
  readonly #lease: TaskLease
  readonly #requests: TaskRequest[]
  readonly #used = new Set<string>()
  readonly #slot: HandlerSlot
  readonly #waiting = new Map<string, (response: string) => void>()

  constructor(store: TaskStore, lease: TaskLease, requests: readonly TaskRequest[], slot: HandlerSlot) {
    this.#store = store
    this.#lease = lease
    this.#slot = slot
    this.#requests = [...requests]
  }

  get open(): number {
    return this.#requests.filter(({ response }) => response === undefined).length
  }

  update(requests: readonly TaskRequest[]) {
    for (const { key, response } of requests) {
      const index = this.#requests.findIndex(request => request.key === key)
      const known = this.#requests[index]
      if (response === undefined || !known || known.response !== undefined) continue
      this.#requests[index] = { ...known, response }
      this.#waiting.get(key)?.(response)
    }
  }

  async request({ method, params, signal, key: name }: ClientRequest): Promise<unknown> {
    // A task has no connection to ping.
    if (method === 'ping') return {}
    const request: Request = name === undefined ? { method, params } : { method, params, as: name }
    const text = JSON.stringify(request)
    for (;;) {
      const { key, response } =
        this.#findEarlier(text) ?? (await this.#add(text, name ?? REQUEST_NAMES[method as InputRequest['method']]))
      const reply: unknown = JSON.parse(response ?? (await this.#awaitResponse(key, signal)))
      if (await isValidResponse({ method, params } as InputRequest, reply)) return reply
    }
  }

  /** Finds a stored request, because a repeated run sends the same requests. */
  #findEarlier(text: string): TaskRequest | undefined {
    const found = this.#requests.find(request => request.text === text && !this.#used.has(request.key))
    if (found) this.#used.add(found.key)
    return found
  }

  async #add(text: string, name: string): Promise<TaskRequest> {
    if (this.#requests.length >= MAX_REQUESTS) throw new ToolError(`A task can send at most ${MAX_REQUESTS} requests.`)
    const request = { key: this.#keyFor(name), text }
    this.#requests.push(request)
    this.#used.add(request.key)
    if (!(await this.#store.addRequest(this.#lease, request))) throw new LeaseLost()
    return this.#requests.find(({ key }) => key === request.key) ?? request
  }

  #keyFor(name: string): string {
    const taken = new Set(this.#requests.map(({ key }) => key))
    for (let number = 1; ; number++) {
      const key = `${name}-${number}`
      if (!taken.has(key)) return key
    }
  }

  #awaitResponse(key: string, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        this.#waiting.delete(key)
        signal.removeEventListener('abort', stop)
        void this.#resume().then(settle)
      }
      // A handler can continue after its cancellation, and then needs a slot again.
      const stop = () => end(() => reject(signal.reason))
      if (signal.aborted) return reject(signal.reason)
      signal.addEventListener('abort', stop, { once: true })
      this.#waiting.set(key, response => end(() => resolve(response)))
      this.#slot.pause()
    })
  }

  async #resume(): Promise<void> {
    if (this.#waiting.size > 0) return
    await this.#slot.resume()
    if (this.#waiting.size > 0) this.#slot.pause()
  }
}

/** Minimum interval between two notes, milliseconds, and maximum characters of a note. */
const NOTE_INTERVAL = 1_000
const MAX_NOTE = 1_024
const RETRY_DELAY = 1_000
/** Maximum time that a closing host waits for a store, milliseconds. */
const CLOSING_TIMEOUT = 2_000
/** Milliseconds before expiry at which a task ends with the error that it was too late. */
const EXPIRY_MARGIN = 2_000

export interface RunHost {
  readonly transport: Transport
  readonly store: TaskStore
  readonly settings: TaskSettings
  readonly routes: ReadonlyMap<string, McpRoute>
  readonly onEnded: (end: TaskEnd['state'], milliseconds: number) => void
  readonly pauseSlot: (run: TaskRun) => void
  /** Called when a run no longer waits for its client. Resolves when its handler can continue. */
  readonly resumeSlot: (run: TaskRun) => Promise<void>
}

type StopReason = 'lost' | 'closing' | 'late'

export class TaskRun {
  readonly lease: TaskLease
  readonly queue: string
  readonly holder: string
  readonly #host: RunHost
  readonly #record: TaskRecord
  readonly #work: Work | undefined
  readonly #cancellation = new Cancellation()
  readonly #requests: RunRequests
  readonly #stopped: Promise<StopReason>
  #resolveStopped: (reason: StopReason) => void = () => undefined
  #version: number
  #closing = false
  #renewedAt: number
  #note: string | undefined
  #noteTimer: Timer | undefined

  constructor(host: RunHost, record: TaskRecord, work: Work | undefined) {
    this.#host = host
    this.#renewedAt = host.transport.clock.now()
    this.#record = record
    this.#work = work
    this.#version = record.version
    this.lease = { id: record.id, fence: record.fence }
    this.queue = record.queue
    this.holder = record.holder
    this.#requests = new RunRequests(host.store, this.lease, record.requests, {
      pause: () => host.pauseSlot(this),
      resume: () => host.resumeSlot(this),
    })
    this.#stopped = new Promise(resolve => {
      this.#resolveStopped = resolve
    })
  }

  get isRetryable(): boolean {
    return this.#work?.again === true
  }

  /** Resolves when the end is stored, or another node has the task. `ready`: resolves when the handler can start. */
  async run(ready: Promise<void>): Promise<{ readonly handlerEnded: Promise<unknown> }> {
    const { clock } = this.#host.transport
    const startedAt = clock.now()
    const late = clock.setTimeout(() => this.#stop('late'), this.#timeLeft())
    const running = this.#execute(ready)
    try {
      const ended = await Promise.race([running, this.#stopped])
      await this.#storeEnd(ended, startedAt)
    } finally {
      clock.clear(late)
      clock.clear(this.#noteTimer)
    }
    return { handlerEnded: running }
  }

  /** Checks for changes by other nodes. `version`: the known current version. */
  async check(version?: number): Promise<void> {
    if (version !== undefined && version <= this.#version) return
    const { store } = this.#host
    const found = await store.getSummary(this.lease.id)
    if (!found || found.fence !== this.lease.fence || hasEnded(found.state)) return this.leaseLost()
    // This run made the other changes itself.
    const record = found.open < this.#requests.open ? await store.get(this.lease.id) : undefined
    this.#requests.update(record?.requests ?? [])
    this.#version = Math.max(this.#version, found.version)
  }

  leaseRenewed() {
    this.#renewedAt = this.#host.transport.clock.now()
  }

  /** If the store does not respond, a retryable task is left to other nodes. */
  renewalFailed() {
    if (this.isRetryable && this.#host.transport.clock.now() - this.#renewedAt > this.#host.settings.lease)
      this.leaseLost()
  }

  leaseLost() {
    this.#stop('lost')
  }

  close() {
    this.#closing = true
    this.#stop('closing')
  }

  /** Uses the clock of the store, which updated the task when it was claimed. */
  #timeLeft(): number {
    const left = this.#record.until - this.#record.updatedAt
    return Math.min(left - Math.min(EXPIRY_MARGIN, left / 10), 2 ** 31 - 1)
  }

  #stop(reason: StopReason) {
    this.#resolveStopped(reason)
    this.#cancellation.abort(reason === 'lost' ? new LeaseLost() : new Error(STOP_MESSAGES[reason]))
  }

  async #execute(ready: Promise<void>): Promise<TaskEnd> {
    try {
      await Promise.race([ready, this.#stopped])
      if (this.#cancellation.reason) throw this.#cancellation.reason
      return await this.#call()
    } catch (thrown) {
      if (!HostError.is(thrown) && !this.#cancellation.aborted) {
        this.#host.transport.log.error(
          { code: 'MH2512', err: thrown, tool: this.#work?.tool },
          'the run of a task failed',
        )
      }
      return failedWith(thrown)
    }
  }

  async #call(): Promise<TaskEnd> {
    const { transport, routes, settings } = this.#host
    const work = this.#work
    const route = work && routes.get(work.route)
    if (!work || !route)
      throw new HostError('invalidParams', { detail: 'the tool of this task does not exist on this server' })
    const cancellation = this.#cancellation
    const { client, tool: name, args } = work
    const offer = await transport.makeOffer(factsOf(work, route, () => cancellation.signal))
    const call = transport.createCall({
      id: this.lease.id,
      method: 'tools/call',
      params: {
        name,
        ...(args !== undefined && { arguments: args }),
        _meta: { ...work.meta, progressToken: this.lease.id },
      },
      revision: MODERN_REVISION,
      offer,
      session: undefined,
      client,
      user: offer.user,
      headers: {},
      asks: this.#requests,
      deferred: true,
      logLevel: undefined,
      channel: {
        send: message => this.#receive(message),
        cancellation,
        disconnect: () => undefined,
      },
    })
    let response = ''
    await offer.run(async () => {
      response = String(encodeResponse(transport, call, await transport.dispatch(call)))
    })
    const outcome = JSON.stringify((JSON.parse(response) as { readonly result: object }).result)
    if (Buffer.byteLength(outcome) <= settings.maxSize) return { state: 'completed', outcome }
    const detail = `the result is larger than the limit of ${settings.maxSize} bytes`
    throw new HostError('internal', { detail }).withStatus200()
  }

  #receive(message: string) {
    if (!message.includes('"notifications/progress"')) return
    const { method, params } = JSON.parse(message) as { method: string; params?: { message?: unknown } }
    if (method !== 'notifications/progress' || typeof params?.message !== 'string') return
    this.#note = params.message.slice(0, MAX_NOTE)
    this.#noteTimer ??= this.#host.transport.clock.setTimeout(() => this.#storeNote(), 0)
  }

  #storeNote() {
    const note = this.#note
    this.#note = undefined
    if (note === undefined) {
      this.#noteTimer = undefined
      return
    }
    this.#host.store.note(this.lease, note).catch(() => undefined)
    this.#noteTimer = this.#host.transport.clock.setTimeout(() => this.#storeNote(), NOTE_INTERVAL)
  }

  async #storeEnd(ended: TaskEnd | StopReason, startedAt: number): Promise<void> {
    const { store, settings, transport, onEnded } = this.#host
    if (ended === 'lost') return
    if (ended === 'closing' && this.isRetryable) {
      await this.#retry(() => store.release(this.lease))
      return
    }
    const end = typeof ended === 'object' ? ended : ended === 'closing' ? nodeLost() : TOO_LATE()
    const keep = (one: TaskEnd) => this.#retry(() => store.end(this.lease, one, settings.ttl, settings.limits))
    const kept = await keep(end)
    const last = typeof kept === 'string' ? NO_ROOM[kept]() : end
    if (last === end ? kept : await keep(last)) onEnded(last.state, transport.clock.now() - startedAt)
  }

  /** Retries while the task can still exist, because the store can return. */
  async #retry<Value>(write: () => Promise<Value>): Promise<Value | false> {
    const { log, clock } = this.#host.transport
    const startedAt = clock.now()
    const task = this.lease.id.slice(0, 6)
    let isLogged = false
    for (;;) {
      try {
        return await write()
      } catch (err) {
        const waited = clock.now() - startedAt
        if (waited > (this.#closing ? CLOSING_TIMEOUT : this.#host.settings.ttl)) {
          log.error({ code: 'MH2513', err, task }, 'cannot store the result of a task')
          return false
        }
        if (!isLogged && waited > this.#host.settings.lease) {
          isLogged = true
          log.warn(
            { code: 'MH2513', task, fix: FIX_STORE },
            'the result of a task is not stored yet: the task store does not respond',
          )
        }
        await new Promise<void>(resolve => clock.setTimeout(resolve, RETRY_DELAY))
      }
    }
  }
}

const FIX_STORE = 'check the task store; results are stored as soon as it responds'

const STOP_MESSAGES = { closing: 'the server is shutting down', late: 'the task has reached its time limit' }

const noRoom = (detail: string) => () =>
  failedWith(new HostError('internal', { detail, data: { reason: 'no-room' } }).withStatus200())

/** An outcome that is small enough to be stored in every case. */
const NO_ROOM = {
  holder: noRoom('the result of the task could not be stored: your tasks have reached their size limit'),
  full: noRoom('the result of the task could not be stored: the store is full'),
}

const TOO_LATE = () => failedWith(new HostError('callTimeout', { detail: 'the task did not end within its ttlMs' }))
