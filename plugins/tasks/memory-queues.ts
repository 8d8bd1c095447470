// Queued and running tasks in memory. In each queue, holders take turns.
import type { QueueDepth, QueueOffer } from '../../core/transport.ts'

interface QueuedTask {
  readonly holder: string
  readonly queue: string
  readonly serial: number
}

/** The tasks of one holder in one queue, in the order in which they run. */
interface Lane<Task> {
  readonly queued: Set<Task>
  readonly running: Set<Task>
}

class Queue<Task extends QueuedTask> {
  /** By holder, the next one first. */
  readonly lanes = new Map<string, Lane<Task>>()
  running = 0

  laneOf(holder: string): Lane<Task> {
    const lane = this.lanes.get(holder) ?? { queued: new Set(), running: new Set() }
    this.lanes.set(holder, lane)
    return lane
  }

  take({ running, runningPerHolder }: QueueOffer): Task | undefined {
    if (this.running >= running) return undefined
    for (const [holder, lane] of this.lanes) {
      const [task] = lane.queued
      if (!task || lane.running.size >= runningPerHolder) continue
      lane.queued.delete(task)
      lane.running.add(task)
      this.running++
      this.lanes.delete(holder)
      this.lanes.set(holder, lane)
      return task
    }
    return undefined
  }

  remove(task: Task) {
    const lane = this.laneOf(task.holder)
    if (lane.running.delete(task)) this.running--
    lane.queued.delete(task)
    if (lane.queued.size + lane.running.size === 0) this.lanes.delete(task.holder)
  }
}

export class Queues<Task extends QueuedTask> {
  readonly #queues = new Map<string, Queue<Task>>()

  /** As the last task of its holder. */
  add(task: Task) {
    this.#lane(task).queued.add(task)
  }

  /** Returns a running task to its queue, as the first of its holder. */
  putBack(task: Task) {
    this.remove(task)
    const { queued } = this.#lane(task)
    const others = [...queued]
    queued.clear()
    for (const one of [task, ...others]) queued.add(one)
  }

  /** Moves the next task of a queue to the running ones. */
  take(offer: QueueOffer): Task | undefined {
    return this.#queues.get(offer.queue)?.take(offer)
  }

  remove(task: Task) {
    const queue = this.#queues.get(task.queue)
    queue?.remove(task)
    if (queue?.lanes.size === 0) this.#queues.delete(task.queue)
  }

  *running(): Iterable<Task> {
    for (const { lanes } of this.#queues.values()) for (const { running } of lanes.values()) yield* running
  }

  depths(): ReadonlyArray<Omit<QueueDepth, 'waited'> & { readonly oldest: Task | undefined }> {
    return [...this.#queues].map(([queue, { lanes, running }]) => {
      const queued = [...lanes.values()].flatMap(lane => [...lane.queued])
      const [oldest] = queued.sort((one, other) => one.serial - other.serial)
      return { queue, queued: queued.length, running, oldest }
    })
  }

  #lane({ queue, holder }: Task): Lane<Task> {
    const found = this.#queues.get(queue) ?? new Queue<Task>()
    this.#queues.set(queue, found)
    return found.laneOf(holder)
  }
}
