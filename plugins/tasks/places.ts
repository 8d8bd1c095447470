// Slots for task handlers in this process. A slot is taken while the handler runs, even if its task has ended, and is free while it
// waits for its client. Each holder has as many slots in a queue as it can have running tasks. Further runs wait for a slot.

/** A run that needs a slot. */
export interface Placed {
  readonly queue: string
  readonly holder: string
  /** Whether it waits for its client. */
  readonly waits: boolean
}

export class Places<Run extends Placed> {
  readonly #begun = new Set<Run>()
  /** Runs that wait for a slot, with the function that starts each. */
  readonly #parked = new Map<Run, () => void>()
  readonly #perHolder: number

  /** `perHolder`: maximum handlers of one holder in a queue. */
  constructor(perHolder: number) {
    this.#perHolder = perHolder
  }

  /** Number of running handlers per queue. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { queue, waits } of this.#begun) if (!waits) counts.set(queue, (counts.get(queue) ?? 0) + 1)
    return counts
  }

  /** Resolves once the run has a slot; never if it leaves before. */
  enter(run: Run): Promise<void> {
    return new Promise(resolve => {
      this.#parked.set(run, resolve)
      this.#begin(run)
    })
  }

  /** The handler has ended, or will not start. */
  leave(run: Run) {
    if (this.#parked.delete(run)) return
    this.#begun.delete(run)
    this.#beginNext(run)
  }

  /** The run waits for its client, so its holder can start another. */
  pause(run: Run) {
    if (this.#begun.has(run)) this.#beginNext(run)
  }

  #beginNext({ queue, holder }: Placed) {
    const next = [...this.#parked.keys()].find(one => one.queue === queue && one.holder === holder)
    if (next) this.#begin(next)
  }

  #begin(run: Run) {
    const own = [...this.#begun].filter(one => one.queue === run.queue && one.holder === run.holder && !one.waits)
    if (own.length >= this.#perHolder) return
    const begin = this.#parked.get(run)
    this.#parked.delete(run)
    this.#begun.add(run)
    begin?.()
  }
}
