// Claims tasks of a store up to the concurrency limit of this process, and renews their leases. It wakes up on store notifications,
// and polls slowly, because expired leases cause no notification.
import type { Logger, Timer } from '../../core/index.ts'
import type { QueueDepth, QueueOffer, TaskNews, TaskRecord } from '../../core/transport.ts'
import { Places } from './places.ts'
import { type RunHost, TaskRun } from './run.ts'
import { nodeGone } from './shown.ts'
import { unpackWork } from './work.ts'

/** A task that may run again does so at most so often: one that ends its node each time is not tried for ever. */
const MOST_RUNS = 5
/** Lapsed tasks that one look settles. */
const MOST_LAPSED = 100
/** Tasks of a tool that wait in this process and are not counted among those under way, for each that may be. */
const WAITING_PER_RUNNING = 10

/** Milliseconds that a task has waited while none of its queue runs. */
const UNSERVED_AFTER = 60_000
const UNSERVED =
  'start a node without --role or with --role worker, whose config has this tool; see that it is not full'

/** The queues that this process takes tasks from, each with how many of it may run here. */
export type ReadQueues = () => ReadonlyMap<string, number>

export interface WorkerHost extends Omit<RunHost, 'waits' | 'returns'> {
  readonly log: Logger
  readonly queues: ReadQueues
  /** Counts a run among what a closing host waits for; throws once that is over. */
  readonly inFlight: (cancel: (reason: Error) => void) => () => void
}

export class TaskWorker {
  readonly #host: WorkerHost
  readonly #runs = new Map<string, TaskRun>()
  readonly #ending = new Set<Promise<unknown>>()
  readonly #runHost: RunHost
  readonly #places: Places<TaskRun>
  #offered: ReadonlyMap<string, number> = new Map()
  #turn = 0
  /** Queues whose next free slot is for a new task before it is for a run of this process. */
  readonly #claimsNext = new Set<string>()
  #taking: Promise<void> | undefined
  #again = false
  #stopped = false
  #beating: Timer | undefined
  #sweeping: Timer | undefined
  #unwatch: () => void = () => undefined
  #away = false
  /** Since when the store has answered in time: those whose nodes could not reach it have not fallen silent. */
  #steadySince = 0
  /** Queues that nobody serves, which was said. */
  readonly #told = new Set<string>()
  depths: readonly QueueDepth[] = []

  constructor(host: WorkerHost) {
    this.#host = host
    this.#runHost = { ...host, waits: run => this.#pause(run), returns: run => this.#resume(run) }
    const { concurrent, offered } = host.settings
    this.#places = new Places({
      all: concurrent,
      inQueue: queue => Math.min(offered.running, this.#offered.get(queue) ?? offered.running),
      perHolder: offered.runningPerHolder,
    })
  }

  start() {
    const { store, settings, transport } = this.#host
    const { clock } = transport
    this.#offered = this.#host.queues()
    // What lapsed in a file lapsed because its host ended; of several nodes each may have had no way to their store.
    this.#steadySince = store.shared === true ? clock.now() : Number.NEGATIVE_INFINITY
    this.#unwatch = store.watch(news => this.#hear(news))
    this.#sweeping = clock.setInterval(() => void this.#sweep(), (settings.lease * 2) / 3).unref()
    void this.#sweep()
  }

  /** A queue that the config does not name yet, such as of a tool that was added while the host runs. */
  serve(queue: string, most: number) {
    if (!this.#offered.has(queue)) this.#offered = new Map([...this.#offered, [queue, most]])
  }

  /** Takes no more; what may run again elsewhere is given back at once, the rest may end by itself for as long as the host waits. */
  drain() {
    this.#stopped = true
    for (const run of this.#runs.values()) if (run.again) run.close()
  }

  /** Resolves once what this process knows of its tasks is kept. */
  async close(): Promise<void> {
    this.#stopped = true
    this.#unwatch()
    const { clock } = this.#host.transport
    clock.clear(this.#sweeping)
    clock.clear(this.#beating)
    for (const run of this.#runs.values()) run.close()
    await Promise.all(this.#ending)
  }

  #hear(news: TaskNews | undefined) {
    if (!news) {
      for (const run of this.#runs.values()) this.#lookAt(run)
      return this.#wake()
    }
    const run = this.#runs.get(news.id)
    if (run) this.#lookAt(run)
    // One more waits, or one less runs.
    if (news.state !== 'running' && this.#offered.has(news.queue)) this.#wake()
  }

  #lookAt(run: TaskRun, version?: number) {
    // What is not seen now is seen with the next beat.
    run.look(version).catch(() => undefined)
  }

  #wake() {
    if (this.#stopped || !this.#host.settings.runs) return this.#beginAll()
    this.#again = true
    this.#taking ??= this.#takeAll().finally(() => {
      this.#taking = undefined
      if (this.#again) this.#wake()
    })
  }

  async #takeAll(): Promise<void> {
    try {
      while (this.#again) {
        this.#again = false
        while (await this.#fillOne());
      }
      this.#away = false
    } catch (err) {
      // The next look around tries again.
      this.#again = false
      this.#beginAll()
      if (!this.#away) this.#host.log.warn({ err }, 'the task store does not answer: tasks wait')
      this.#away = true
    }
  }

  /** Fills one free slot. New tasks of a queue and its runs in this process that wait for a slot take turns. */
  async #fillOne(): Promise<boolean> {
    return this.#beginNext(queue => !this.#claimsNext.has(queue)) || (await this.#claimOne()) || this.#beginNext()
  }

  #beginNext(isOpen: (queue: string) => boolean = () => true): boolean {
    const run = this.#places.beginNext(isOpen)
    if (run) this.#claimsNext.add(run.queue)
    return run !== undefined
  }

  /** Assigns the free slots to waiting runs of this process. */
  #beginAll() {
    while (this.#beginNext());
  }

  async #claimOne(): Promise<boolean> {
    const counts = this.#places.counts()
    if (this.#stopped || this.#isFull(counts)) return false
    const offers = this.#offers(counts)
    if (offers.length === 0) return false
    const record = await this.#host.store.claim(offers, this.#host.settings.lease)
    for (const { queue } of offers) this.#claimsNext.delete(queue)
    if (record) this.#begin(record)
    return record !== undefined
  }

  #isFull(counts: ReadonlyMap<string, number>): boolean {
    return [...counts.values()].reduce((sum, count) => sum + count, 0) >= this.#host.settings.concurrent
  }

  /** A run that waits for its client frees its slot for other runs. */
  #pause(run: TaskRun) {
    this.#places.pause(run)
    this.#wake()
  }

  /** Resolves when the run has a slot again. */
  #resume(run: TaskRun): Promise<void> {
    const ready = this.#places.resume(run)
    this.#wake()
    return ready
  }

  /** Rotates the queues, so that each is the first in turn. */
  #offers(counts: ReadonlyMap<string, number>): QueueOffer[] {
    const { running, runningPerHolder } = this.#host.settings.offered
    const open = [...this.#offered].filter(([queue, most]) => (counts.get(queue) ?? 0) < most)
    const first = open.length === 0 ? 0 : this.#turn++ % open.length
    const idle = this.#places.idle()
    const beside = (most: number, waiting = 0) => most + Math.min(waiting, WAITING_PER_RUNNING * most)
    return [...open.slice(first), ...open.slice(0, first)].map(([queue]) => ({
      queue,
      running: beside(running, idle.get(queue)?.all),
      runningPerHolder: beside(runningPerHolder, idle.get(queue)?.ofOne),
    }))
  }

  #begin(record: TaskRecord) {
    const run = new TaskRun(this.#runHost, record, unpackWork(record))
    let leave = () => {}
    try {
      leave = this.#host.inFlight(() => run.close())
    } catch {
      // The host closed while the store answered.
      void this.#host.store.release(run.lease).catch(() => undefined)
      return
    }
    this.#runs.set(record.id, run)
    this.#beating ??= this.#host.transport.clock.setInterval(() => void this.#beat(), this.#host.settings.lease / 3)
    const settled = run.run(this.#places.enter(run))
    if (this.#stopped && run.again) run.close()
    void this.#end(run, settled, leave)
  }

  async #end(run: TaskRun, settled: ReturnType<TaskRun['run']>, leave: () => void) {
    this.#ending.add(settled)
    const { handlerOver } = await settled.catch(() => ({ handlerOver: Promise.resolve() }))
    this.#ending.delete(settled)
    this.#runs.delete(run.lease.id)
    if (this.#runs.size === 0) {
      this.#host.transport.clock.clear(this.#beating)
      this.#beating = undefined
    }
    leave()
    // A handler that does not heed its signal keeps its place until it ends.
    await handlerOver
    this.#places.leave(run)
    this.#wake()
  }

  /** Renews the leases of what runs. */
  async #beat(): Promise<void> {
    const runs = [...this.#runs.values()]
    try {
      const versions = await this.#host.store.renew(
        runs.map(({ lease }) => lease),
        this.#host.settings.lease,
      )
      for (const [index, run] of runs.entries()) {
        const version = versions[index]
        if (version === undefined) {
          run.lost()
          continue
        }
        run.renewed()
        this.#lookAt(run, version)
      }
    } catch {
      // A lease that lapsed is still one until another claims the task.
      for (const run of runs) run.unrenewed()
    }
  }

  async #sweep(): Promise<void> {
    const { store, log, settings, transport } = this.#host
    try {
      this.#offered = new Map([...this.#offered, ...this.#host.queues()])
      const asked = transport.clock.now()
      // Those of this process first: where it stood still, they lapsed with no harm done.
      if (this.#runs.size > 0) await this.#beat()
      this.depths = await store.depths()
      const now = transport.clock.now()
      // After an outage all leases have lapsed: nodes that live renew theirs.
      if (now - asked > settings.lease / 3) this.#steadySince = now
      else this.#steadySince = Math.min(this.#steadySince, now)
      if (store.shared && now - this.#steadySince >= settings.lease) await this.#settleLapsed()
      this.#tellOfUnserved()
    } catch (err) {
      this.#steadySince = Number.POSITIVE_INFINITY
      log.debug({ err }, 'the task store does not answer')
    }
    this.#wake()
  }

  /** Once of each queue, until somebody takes from it. */
  #tellOfUnserved() {
    for (const { queue, queued, running, waited } of this.depths) {
      const isUnserved = queued > 0 && running === 0 && waited > UNSERVED_AFTER
      if (!isUnserved) this.#told.delete(queue)
      if (!isUnserved || this.#told.has(queue)) continue
      this.#told.add(queue)
      const seconds = Math.round(waited / 1_000)
      this.#host.log.warn({ queue, queued, seconds, fix: UNSERVED }, 'tasks wait, and no node takes them')
    }
  }

  /** Tasks whose nodes are silent wait again where they may run twice, and fail where not. */
  async #settleLapsed(): Promise<void> {
    const { store, settings, log, ended } = this.#host
    for (let count = 0; count < MOST_LAPSED && !this.#stopped; count++) {
      const record = await store.claimLapsed(settings.lease)
      if (!record) return
      const again = unpackWork(record)?.again === true && record.runs < MOST_RUNS
      const done = again ? await store.release(record) : await store.end(record, nodeGone(), settings.ttl)
      if (done && !again) ended('failed', this.#host.transport.clock.now() - record.createdAt)
      log.warn({ task: record.id.slice(0, 6), queue: record.queue, again }, 'the node that ran a task is gone')
    }
  }
}
