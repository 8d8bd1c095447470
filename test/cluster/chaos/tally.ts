// The counters of a chaos run, and those that must be zero. All clients of a run share them.

export interface Tally {
  clients: number
  finished: number
  /** Calls that were answered with their result, and the numbered events of all streams. */
  calls: number
  events: number
  duplicates: number
  missing: number
  disordered: number
  /** Messages that belong to another call. */
  foreign: number
  /** A session that nobody ended was answered 404. */
  sessionsLost: number
  /** The host said by 404, to a client that came back, that events are gone. */
  gaps: number
  /** The host told a listener that anything may have changed: which changes there were is gone. */
  toldAnew: number
  /** The same, with every resource after it: a node that ends before it has sent all of them is followed by one that sends them again. */
  toldWhole: number
  /** Calls that were answered with `node-lost`. */
  nodeLost: number
  /** Requests of which the client cannot know whether they were served: the connection, or nginx's, broke before an answer. */
  unsure: number
  /** Answers 503, each with Retry-After. */
  refused: number
  /** Streams that ended before their answer, those that the client dropped, and returns to a stream. */
  breaks: number
  drops: number
  resumed: number
  /** The longest time that a client waited for the next event of a stream, milliseconds. */
  silence: number
}

export const createTally = (): Tally => ({
  clients: 0,
  finished: 0,
  calls: 0,
  events: 0,
  duplicates: 0,
  missing: 0,
  disordered: 0,
  foreign: 0,
  sessionsLost: 0,
  gaps: 0,
  toldAnew: 0,
  toldWhole: 0,
  nodeLost: 0,
  unsure: 0,
  refused: 0,
  breaks: 0,
  drops: 0,
  resumed: 0,
  silence: 0,
})

/** Holds the ordinals of one sequence against 1, 2, 3, ... as they come. */
export class Sequence {
  /** The last that came in order. */
  last: number
  readonly #tally: Tally
  readonly #skipped = new Set<number>()

  constructor(tally: Tally, last = 0) {
    this.#tally = tally
    this.last = last
  }

  came(ordinal: number): void {
    this.#tally.events++
    if (ordinal > this.last) {
      for (let skipped = this.last + 1; skipped < ordinal; skipped++) this.#skipped.add(skipped)
      this.#tally.missing += ordinal - this.last - 1
      this.last = ordinal
    } else if (this.#skipped.delete(ordinal)) {
      this.#tally.missing--
      this.#tally.disordered++
    } else this.#tally.duplicates++
  }

  /** What was to come until `end` and did not is missing. */
  end(end: number): void {
    this.#tally.missing += end - this.last
  }
}

/** What a kind of failure may lead to; all else must not happen. */
export interface Allowance {
  /** Redis lost its data: events may be gone, as long as that is said. */
  readonly gaps: boolean
  /** What keeps the changes lost them; default: as `gaps`. */
  readonly toldAnew?: boolean
  /** Nodes died, or cannot be told from dead ones. */
  readonly nodeLost: boolean
}

/** What must not have happened; empty when all is well. */
export function faultsOf(tally: Tally, allowed: Allowance): string[] {
  const { clients, finished, calls, events } = tally
  const none = ['duplicates', 'missing', 'disordered', 'foreign', 'sessionsLost'] as const
  const more = (['gaps', 'toldAnew', 'nodeLost'] as const).filter(name => !(allowed[name] ?? allowed.gaps))
  return [
    ...[...none, ...more].filter(name => tally[name] !== 0).map(name => `${name}: ${tally[name]}`),
    ...(finished === clients ? [] : [`${clients - finished} of ${clients} clients did not finish`]),
    ...(calls > 0 && events > 0 ? [] : ['there was no load']),
  ]
}

/** For people, line by line. */
export function describeTally({ silence, ...counts }: Tally): string[] {
  const counted = Object.entries(counts).map(([name, count]) => `${name} ${count}`)
  return [counted.join(', '), `longest silence of a stream ${(silence / 1_000).toFixed(1)} s`]
}
