// Slots for task handlers in this process, shared fairly by holders. A handler that waits for its client occupies no
// slot.
import { FairQueue, type Queued } from '../../core/transport.ts'

export interface Runnable {
  readonly queue: string
  readonly holder: string
}

interface SlotLimits {
  readonly all: number
  readonly inQueue: (queue: string) => number
  readonly perHolder: number
}

class Slot<Run extends Runnable> implements Queued {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  isResuming = false
  ready: Promise<void> | undefined
  start: () => void = () => undefined
  readonly run: Run

  constructor(run: Run) {
    this.run = run
  }
}

export class Slots<Run extends Runnable> {
  readonly #slots = new Map<Run, Slot<Run>>()
  readonly #held = new Set<Slot<Run>>()
  readonly #queue = new FairQueue<Slot<Run>>()
  readonly #limits: SlotLimits

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { run } of this.#held) counts.set(run.queue, (counts.get(run.queue) ?? 0) + 1)
    return counts
  }

  idle(): ReadonlyMap<string, { readonly all: number; readonly ofOne: number }> {
    const idle = new Map<string, Map<string, number>>()
    for (const { run, isResuming } of this.#slots.values()) {
      if (!isResuming) continue
      const holders = idle.get(run.queue) ?? new Map<string, number>()
      idle.set(run.queue, holders.set(run.holder, (holders.get(run.holder) ?? 0) + 1))
    }
    const counted = [...idle].map(([queue, holders]) => {
      const counts = [...holders.values()]
      return [queue, { all: counts.reduce((sum, count) => sum + count, 0), ofOne: Math.max(...counts) }] as const
    })
    return new Map(counted)
  }

  /** Resolves once the run has a slot. Never resolves if the run leaves first. */
  enter(run: Run): Promise<void> {
    const slot = new Slot(run)
    this.#slots.set(run, slot)
    const ready = this.#wait(slot)
    if (this.#fits(slot)) this.#start(slot)
    return ready
  }

  pause(run: Run) {
    const slot = this.#slots.get(run)
    if (slot && this.#free(slot)) slot.isResuming = true
  }

  /** Resolves once `startNext` gives the run a slot again. Never resolves if the run leaves first. */
  resume(run: Run): Promise<void> {
    const slot = this.#slots.get(run)
    if (!slot?.isResuming) return Promise.resolve()
    return slot.ready ?? this.#wait(slot)
  }

  leave(run: Run) {
    const slot = this.#slots.get(run)
    if (!slot) return
    this.#slots.delete(run)
    this.#queue.delete(run.holder, slot)
    this.#free(slot)
  }

  /** Assigns a free slot to the next waiting run of this process, in an open queue. Returns the run. */
  startNext(isOpen: (queue: string) => boolean): Run | undefined {
    const next = this.#queue.next(slot => isOpen(slot.run.queue) && this.#fits(slot), 'all')
    if (next) this.#start(next)
    return next?.run
  }

  #wait(slot: Slot<Run>): Promise<void> {
    slot.ready = new Promise(resolve => {
      slot.start = resolve
    })
    this.#queue.add(slot.run.holder, slot)
    return slot.ready
  }

  #fits({ run: { queue, holder } }: Slot<Run>): boolean {
    const { all, inQueue, perHolder } = this.#limits
    if (this.#held.size >= all) return false
    const ofQueue = [...this.#held].filter(({ run }) => run.queue === queue)
    return ofQueue.length < inQueue(queue) && ofQueue.filter(({ run }) => run.holder === holder).length < perHolder
  }

  #start(slot: Slot<Run>) {
    const { holder } = slot.run
    this.#queue.delete(holder, slot)
    this.#queue.take(holder)
    this.#held.add(slot)
    slot.isResuming = false
    slot.ready = undefined
    slot.start()
  }

  #free(slot: Slot<Run>): boolean {
    if (!this.#held.delete(slot)) return false
    this.#queue.leave(slot.run.holder)
    return true
  }
}
