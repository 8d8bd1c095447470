// Whose handlers run in this process: those too whose tasks are over. A holder has as many places in a queue as it may have tasks
// that are under way, and what it has beyond them begins when one of its own ends.

/** What takes a place. */
export interface Placed {
  readonly queue: string
  readonly holder: string
}

export class Places<Run extends Placed> {
  /** By queue, then by holder. */
  readonly #busy = new Map<string, Map<string, number>>()
  /** Those that wait for a place, each with what begins it. */
  readonly #parked = new Map<Run, () => void>()
  readonly #perHolder: number

  /** `perHolder`: handlers of one holder in a queue. */
  constructor(perHolder: number) {
    this.#perHolder = perHolder
  }

  /** Handlers of one queue that run. */
  countOf(queue: string): number {
    return [...(this.#busy.get(queue)?.values() ?? [])].reduce((sum, count) => sum + count, 0)
  }

  /** Of all queues. */
  get count(): number {
    return [...this.#busy.keys()].reduce((sum, queue) => sum + this.countOf(queue), 0)
  }

  /** Resolves once the run has a place; never for one that leaves before. */
  enter(run: Run): Promise<void> {
    if (this.#of(run) < this.#perHolder) {
      this.#add(run, 1)
      return Promise.resolve()
    }
    return new Promise(resolve => this.#parked.set(run, resolve))
  }

  /** Its handler is over, or does not begin any more. */
  leave(run: Run) {
    if (this.#parked.delete(run)) return
    this.#add(run, -1)
    const next = [...this.#parked].find(([{ queue, holder }]) => queue === run.queue && holder === run.holder)
    if (!next) return
    const [parked, begin] = next
    this.#parked.delete(parked)
    this.#add(parked, 1)
    begin()
  }

  #of({ queue, holder }: Placed): number {
    return this.#busy.get(queue)?.get(holder) ?? 0
  }

  #add(run: Placed, more: number) {
    const { queue, holder } = run
    const holders = this.#busy.get(queue) ?? new Map<string, number>()
    const count = this.#of(run) + more
    if (count > 0) this.#busy.set(queue, holders.set(holder, count))
    else holders.delete(holder)
    if (holders.size === 0) this.#busy.delete(queue)
  }
}
