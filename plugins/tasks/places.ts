// Slots for task handlers in this process, shared fairly by holders. A handler that waits for its client occupies no
// slot.
import { FairQueue, type Queued } from '../../core/transport.ts'

export interface Placed {
  readonly queue: string
  readonly holder: string
}

interface PlaceLimits {
  readonly all: number
  readonly inQueue: (queue: string) => number
  readonly perHolder: number
}

class Place<Run extends Placed> implements Queued {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  returns = false
  ready: Promise<void> | undefined
  begin: () => void = () => undefined
  readonly run: Run

  constructor(run: Run) {
    this.run = run
  }
}

export class Places<Run extends Placed> {
  readonly #places = new Map<Run, Place<Run>>()
  readonly #held = new Set<Place<Run>>()
  readonly #line = new FairQueue<Place<Run>>()
  readonly #limits: PlaceLimits

  constructor(limits: PlaceLimits) {
    this.#limits = limits
  }

  counts(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { run } of this.#held) counts.set(run.queue, (counts.get(run.queue) ?? 0) + 1)
    return counts
  }

  idle(): ReadonlyMap<string, { readonly all: number; readonly ofOne: number }> {
    const idle = new Map<string, Map<string, number>>()
    for (const { run, returns } of this.#places.values()) {
      if (!returns) continue
      const holders = idle.get(run.queue) ?? new Map<string, number>()
      idle.set(run.queue, holders.set(run.holder, (holders.get(run.holder) ?? 0) + 1))
    }
    const counted = [...idle].map(([queue, holders]) => {
      const counts = [...holders.values()]
      return [queue, { all: counts.reduce((sum, count) => sum + count, 0), ofOne: Math.max(...counts) }] as const
    })
    return new Map(counted)
  }

  /** Resolves once the run has a slot; never if the run leaves before. */
  enter(run: Run): Promise<void> {
    const place = new Place(run)
    this.#places.set(run, place)
    const ready = this.#wait(place)
    if (this.#fits(place)) this.#begin(place)
    return ready
  }

  pause(run: Run) {
    const place = this.#places.get(run)
    if (place && this.#free(place)) place.returns = true
  }

  /** Resolves once the run has a slot again, by `beginNext`; never if the run leaves before. */
  resume(run: Run): Promise<void> {
    const place = this.#places.get(run)
    if (!place?.returns) return Promise.resolve()
    return place.ready ?? this.#wait(place)
  }

  leave(run: Run) {
    const place = this.#places.get(run)
    if (!place) return
    this.#places.delete(run)
    this.#line.delete(run.holder, place)
    this.#free(place)
  }

  /** Assigns a free slot to the next waiting run of this process, in an open queue. Returns the run. */
  beginNext(isOpen: (queue: string) => boolean): Run | undefined {
    const next = this.#line.next(place => isOpen(place.run.queue) && this.#fits(place), 'all')
    if (next) this.#begin(next)
    return next?.run
  }

  #wait(place: Place<Run>): Promise<void> {
    place.ready = new Promise(resolve => {
      place.begin = resolve
    })
    this.#line.add(place.run.holder, place)
    return place.ready
  }

  #fits({ run: { queue, holder } }: Place<Run>): boolean {
    const { all, inQueue, perHolder } = this.#limits
    if (this.#held.size >= all) return false
    const ofQueue = [...this.#held].filter(({ run }) => run.queue === queue)
    return ofQueue.length < inQueue(queue) && ofQueue.filter(({ run }) => run.holder === holder).length < perHolder
  }

  #begin(place: Place<Run>) {
    const { holder } = place.run
    this.#line.delete(holder, place)
    this.#line.take(holder)
    this.#held.add(place)
    place.returns = false
    place.ready = undefined
    place.begin()
  }

  #free(place: Place<Run>): boolean {
    if (!this.#held.delete(place)) return false
    this.#line.leave(place.run.holder)
    return true
  }
}
