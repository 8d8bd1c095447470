// Whose handlers run in this process: those too whose tasks are over, and not those that wait for their client. A holder has as
// many places in a queue as it may have tasks that are under way, and what it has beyond them begins when one of its own ends or
// waits.

/** What takes a place. */
export interface Placed {
  readonly queue: string
  readonly holder: string
  /** Whether it waits for its client. */
  readonly waits: boolean
}

export class Places<Run extends Placed> {
  readonly #begun = new Set<Run>()
  /** Those that wait for a place, each with what begins it. */
  readonly #parked = new Map<Run, () => void>()
  readonly #perHolder: number

  /** `perHolder`: handlers of one holder in a queue. */
  constructor(perHolder: number) {
    this.#perHolder = perHolder
  }

  /** Handlers that run, by queue. */
  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { queue, waits } of this.#begun) if (!waits) counts.set(queue, (counts.get(queue) ?? 0) + 1)
    return counts
  }

  /** Resolves once the run has a place; never for one that leaves before. */
  enter(run: Run): Promise<void> {
    return new Promise(resolve => {
      this.#parked.set(run, resolve)
      this.#begin(run)
    })
  }

  /** Its handler is over, or does not begin any more. */
  leave(run: Run) {
    if (this.#parked.delete(run)) return
    this.#begun.delete(run)
    this.#beginNext(run)
  }

  /** It waits for its client, and its holder may begin another. */
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
