// Claims tasks up to the process limits, renews their leases, and polls for expired ones.

import type { Logger, Timer } from '../../core/plugin.ts'
import type { QueueDepth, QueueOffer, TaskChange, TaskRecord } from '../families/task-store/index.ts'
import { nodeLost, unpackWork } from './records.ts'
import { type RunHost, TaskRun } from './run.ts'
import { Slots } from './slots.ts'

/** Maximum runs of a task, for tasks that crash their node each time. */
const MAX_RUNS = 5
const MAX_LAPSED = 100
/** Waiting tasks that do not count as running, for each running task of a tool. */
const WAITING_PER_RUNNING = 10

const UNSERVED_AFTER = 60_000
const UNSERVED =
  'start a node with this tool and without --role, or with --role worker, and check that it has free slots'

export interface WorkerHost extends Omit<RunHost, 'pauseSlot' | 'resumeSlot'> {
  readonly log: Logger
  readonly queues: () => ReadonlyMap<string, number>
  /** Registers a run for graceful shutdown; throws during shutdown. */
  readonly inFlight: (cancel: (reason: Error) => void) => () => void
}

export class TaskWorker {
  readonly #host: WorkerHost
  readonly #runs = new Map<string, TaskRun>()
  readonly #pendingRuns = new Set<Promise<unknown>>()
  readonly #runHost: RunHost
  readonly #slots: Slots<TaskRun>
  /** Maximum running tasks of each queue that this node serves. */
  #queues: ReadonlyMap<string, number> = new Map()
  #turn = 0
  /** Queues in which a new task gets the next free slot. */
  readonly #claimsNext = new Set<string>()
  #filling: Promise<void> | undefined
  #isWoken = false
  #isStopped = false
  #renewTimer: Timer | undefined
  #sweepTimer: Timer | undefined
  #unwatch: () => void = () => undefined
  #isStoreDown = false
  /** Start of the store's current availability. Expired leases are taken over one lease duration later. */
  #steadySince = 0
  readonly #warnedQueues = new Set<string>()
  depths: readonly QueueDepth[] = []

  constructor(host: WorkerHost) {
    this.#host = host
    this.#runHost = { ...host, pauseSlot: run => this.#pause(run), resumeSlot: run => this.#resume(run) }
    const { concurrent, offered } = host.settings
    this.#slots = new Slots({
      all: concurrent,
      inQueue: queue => Math.min(offered.running, this.#queues.get(queue) ?? offered.running),
      perHolder: offered.runningPerHolder,
    })
  }

  start() {
    const { store, settings, transport } = this.#host
    const { clock } = transport
    this.#queues = this.#host.queues()
    // With a shared store, other nodes possibly could not reach it.
    this.#steadySince = store.shared === true ? clock.now() : Number.NEGATIVE_INFINITY
    this.#unwatch = store.watch(change => this.#receive(change))
    this.#sweepTimer = clock.setInterval(() => void this.#sweep(), (settings.lease * 2) / 3).unref()
    void this.#sweep()
  }

  serve(queue: string, most: number) {
    if (!this.#queues.has(queue)) this.#queues = new Map([...this.#queues, [queue, most]])
  }

  /** Returns retryable tasks at once; others can finish during shutdown. */
  drain() {
    this.#isStopped = true
    for (const run of this.#runs.values()) if (run.isRetryable) run.close()
  }

  async close(): Promise<void> {
    this.#isStopped = true
    this.#unwatch()
    const { clock } = this.#host.transport
    clock.clear(this.#sweepTimer)
    clock.clear(this.#renewTimer)
    for (const run of this.#runs.values()) run.close()
    await Promise.all(this.#pendingRuns)
  }

  #receive(change: TaskChange | undefined) {
    if (!change) {
      for (const run of this.#runs.values()) this.#checkRun(run)
      return this.#wake()
    }
    const run = this.#runs.get(change.id)
    if (run) this.#checkRun(run)
    if (change.state !== 'running' && this.#queues.has(change.queue)) this.#wake()
  }

  #checkRun(run: TaskRun, version?: number) {
    run.check(version).catch(() => undefined)
  }

  #wake() {
    if (this.#isStopped || !this.#host.settings.runs) return this.#startAll()
    this.#isWoken = true
    this.#filling ??= this.#fillSlots().finally(() => {
      this.#filling = undefined
      if (this.#isWoken) this.#wake()
    })
  }

  async #fillSlots(): Promise<void> {
    try {
      while (this.#isWoken) {
        this.#isWoken = false
        while (await this.#fillSlot());
      }
      this.#isStoreDown = false
    } catch (err) {
      this.#isWoken = false
      this.#startAll()
      if (!this.#isStoreDown)
        this.#host.log.warn({ code: 'MH2514', err }, 'the task store does not respond: tasks are queued')
      this.#isStoreDown = true
    }
  }

  /** Alternates between new tasks and waiting runs of a queue. */
  async #fillSlot(): Promise<boolean> {
    return this.#startNext(queue => !this.#claimsNext.has(queue)) || (await this.#claimOne()) || this.#startNext()
  }

  #startNext(isOpen: (queue: string) => boolean = () => true): boolean {
    const run = this.#slots.startNext(isOpen)
    if (run) this.#claimsNext.add(run.queue)
    return run !== undefined
  }

  #startAll() {
    while (this.#startNext());
  }

  async #claimOne(): Promise<boolean> {
    const counts = this.#slots.counts()
    if (this.#isStopped || this.#isFull(counts)) return false
    const offers = this.#offers(counts)
    if (offers.length === 0) return false
    const record = await this.#host.store.claim(offers, this.#host.settings.lease)
    for (const { queue } of offers) this.#claimsNext.delete(queue)
    if (record) this.#startRun(record)
    return record !== undefined
  }

  #isFull(counts: ReadonlyMap<string, number>): boolean {
    return [...counts.values()].reduce((sum, count) => sum + count, 0) >= this.#host.settings.concurrent
  }

  #pause(run: TaskRun) {
    this.#slots.pause(run)
    this.#wake()
  }

  #resume(run: TaskRun): Promise<void> {
    const ready = this.#slots.resume(run)
    this.#wake()
    return ready
  }

  #offers(counts: ReadonlyMap<string, number>): QueueOffer[] {
    const { running, runningPerHolder } = this.#host.settings.offered
    const open = [...this.#queues].filter(([queue, most]) => (counts.get(queue) ?? 0) < most)
    const first = open.length === 0 ? 0 : this.#turn++ % open.length
    const idle = this.#slots.idle()
    const withWaiting = (most: number, waiting = 0) => most + Math.min(waiting, WAITING_PER_RUNNING * most)
    return [...open.slice(first), ...open.slice(0, first)].map(([queue]) => ({
      queue,
      running: withWaiting(running, idle.get(queue)?.all),
      runningPerHolder: withWaiting(runningPerHolder, idle.get(queue)?.ofOne),
    }))
  }

  #startRun(record: TaskRecord) {
    const run = new TaskRun(this.#runHost, record, unpackWork(record))
    let leave = () => {}
    try {
      leave = this.#host.inFlight(() => run.close())
    } catch {
      void this.#host.store.release(run.lease).catch(() => undefined)
      return
    }
    this.#runs.set(record.id, run)
    const { transport, settings } = this.#host
    this.#renewTimer ??= transport.clock.setInterval(() => void this.#renewLeases(), settings.lease / 3)
    const settled = run.run(this.#slots.enter(run))
    if (this.#isStopped && run.isRetryable) run.close()
    void this.#end(run, settled, leave)
  }

  async #end(run: TaskRun, settled: ReturnType<TaskRun['run']>, leave: () => void) {
    this.#pendingRuns.add(settled)
    const { handlerEnded } = await settled.catch(() => ({ handlerEnded: Promise.resolve() }))
    this.#pendingRuns.delete(settled)
    this.#runs.delete(run.lease.id)
    if (this.#runs.size === 0) {
      this.#host.transport.clock.clear(this.#renewTimer)
      this.#renewTimer = undefined
    }
    leave()
    // A handler that ignores its signal keeps its slot until it ends.
    await handlerEnded
    this.#slots.leave(run)
    this.#wake()
  }

  async #renewLeases(): Promise<void> {
    const runs = [...this.#runs.values()]
    try {
      const versions = await this.#host.store.renew(
        runs.map(({ lease }) => lease),
        this.#host.settings.lease,
      )
      for (const [index, run] of runs.entries()) {
        const version = versions[index]
        if (version === undefined) run.leaseLost()
        else {
          run.leaseRenewed()
          this.#checkRun(run, version)
        }
      }
    } catch {
      // An expired lease is valid until another claim.
      for (const run of runs) run.renewalFailed()
    }
  }

  async #sweep(): Promise<void> {
    const { store, log, settings, transport } = this.#host
    try {
      this.#queues = new Map([...this.#queues, ...this.#host.queues()])
      const since = transport.clock.now()
      // Own leases first, because they would expire while this process is blocked.
      if (this.#runs.size > 0) await this.#renewLeases()
      this.depths = await store.depths()
      const now = transport.clock.now()
      // After an outage, other nodes need time to renew their leases.
      if (now - since > settings.lease / 3) this.#steadySince = now
      else this.#steadySince = Math.min(this.#steadySince, now)
      if (store.shared && now - this.#steadySince >= settings.lease) await this.#settleLapsed()
      this.#warnOfUnserved()
    } catch (err) {
      this.#steadySince = Number.POSITIVE_INFINITY
      log.debug({ err }, 'the task store does not respond')
    }
    this.#wake()
  }

  #warnOfUnserved() {
    for (const { queue, queued, running, waited } of this.depths) {
      const isUnserved = queued > 0 && running === 0 && waited > UNSERVED_AFTER
      if (!isUnserved) this.#warnedQueues.delete(queue)
      if (!isUnserved || this.#warnedQueues.has(queue)) continue
      this.#warnedQueues.add(queue)
      const seconds = Math.round(waited / 1_000)
      this.#host.log.warn(
        { code: 'MH2515', queue, queued, seconds, fix: UNSERVED },
        'tasks are queued, and no node runs them',
      )
    }
  }

  /** Requeues tasks of lost nodes, or fails them if they are not retryable. */
  async #settleLapsed(): Promise<void> {
    const { store, settings, log, onEnded } = this.#host
    for (let count = 0; count < MAX_LAPSED && !this.#isStopped; count++) {
      const record = await store.claimLapsed(settings.lease)
      if (!record) return
      const isRetryable = unpackWork(record)?.again === true && record.runs < MAX_RUNS
      const done = isRetryable ? await store.release(record) : await store.end(record, nodeLost(), settings.ttl)
      if (done && !isRetryable) onEnded('failed', this.#host.transport.clock.now() - record.createdAt)
      log.warn(
        { code: 'MH2516', task: record.id.slice(0, 6), queue: record.queue, requeued: isRetryable },
        'the node that ran a task was lost',
      )
    }
  }
}
