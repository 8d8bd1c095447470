// Who waits in which queue, and who runs: holders take turns in each, so that nobody's many tasks hold up the few of another.
// For memory-task-store.ts.
import type { QueueDepth, QueueOffer } from './task-store.ts'

/** What stands in a line. */
export interface Waiting {
  readonly holder: string
  readonly queue: string
}

/** The tasks of one holder in one queue. */
interface Lane<Task> {
  /** In the order in which they are taken. */
  readonly queued: Set<Task>
  readonly running: Set<Task>
}

/** Those who wait and those who run. */
export interface Lines<Task> {
  /** As the last of its holder. */
  add(task: Task): void
  /** One that ran, as the first of its holder. */
  putBack(task: Task): void
  /** The next that may run; it runs from now on. */
  take(offer: QueueOffer): Task | undefined
  /** From wherever it is. */
  remove(task: Task): void
  running(): Iterable<Task>
  depths(): ReadonlyArray<Omit<QueueDepth, 'waited'> & { readonly oldest: Task | undefined }>
}

class Line<Task extends Waiting> {
  /** The holder whose turn is next comes first. */
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

/** For the tasks of one store. */
export function createLines<Task extends Waiting & { readonly serial: number }>(): Lines<Task> {
  const lines = new Map<string, Line<Task>>()
  const lineOf = (queue: string): Line<Task> => {
    const line = lines.get(queue) ?? new Line<Task>()
    lines.set(queue, line)
    return line
  }
  const add = (task: Task) => void lineOf(task.queue).laneOf(task.holder).queued.add(task)
  function remove(task: Task) {
    const line = lineOf(task.queue)
    line.remove(task)
    if (line.lanes.size === 0) lines.delete(task.queue)
  }
  return {
    add,
    remove,
    take: offer => lines.get(offer.queue)?.take(offer),
    putBack(task) {
      remove(task)
      const { queued } = lineOf(task.queue).laneOf(task.holder)
      const others = [...queued]
      queued.clear()
      for (const one of [task, ...others]) queued.add(one)
    },
    *running() {
      for (const { lanes } of lines.values()) for (const { running } of lanes.values()) yield* running
    },
    depths: () =>
      [...lines].map(([queue, { lanes, running }]) => {
        const queued = [...lanes.values()].flatMap(lane => [...lane.queued])
        const oldest = queued.reduce<Task | undefined>(
          (found, task) => (found && found.serial < task.serial ? found : task),
          undefined,
        )
        return { queue, queued: queued.length, running, oldest }
      }),
  }
}
