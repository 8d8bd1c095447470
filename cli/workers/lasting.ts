// What outlasts a worker: where an answer to all processes (every-process.ts) has numbers in `lasting`, such as how often
// something happened, they stay part of the whole when the worker ends, or is too busy to answer. In the primary.
import { isObject } from '../../core/index.ts'

type Numbers = Readonly<Record<string, number>>

/** As an answer of a worker that has nothing else to say. */
interface Left {
  readonly lasting: Numbers
}

interface Kept {
  /** Of workers, by their id: their last. */
  readonly last: Map<number, Numbers>
  /** Of all that ended, added up. */
  readonly ended: Map<string, number>
}

const hasLasting = (given: unknown): given is Left => isObject(given) && isObject(given['lasting'])

export interface Lasting {
  /** A worker gave this for a name. */
  keep(name: string, worker: number, given: unknown): void
  ended(worker: number): void
  /** What there is for a name beside the answers of these workers. */
  without(name: string, answered: ReadonlySet<number>): Left[]
}

export function createLasting(): Lasting {
  const names = new Map<string, Kept>()
  return {
    keep(name, worker, given) {
      if (!hasLasting(given)) return
      const kept = names.get(name) ?? { last: new Map(), ended: new Map() }
      names.set(name, kept)
      kept.last.set(worker, given.lasting)
    },
    ended(worker) {
      for (const { last, ended } of names.values()) {
        for (const [key, value] of Object.entries(last.get(worker) ?? {})) ended.set(key, (ended.get(key) ?? 0) + value)
        last.delete(worker)
      }
    },
    without(name, answered) {
      const { last = [], ended } = names.get(name) ?? {}
      const silent = [...last].filter(([worker]) => !answered.has(worker)).map(([, lasting]) => ({ lasting }))
      return ended && ended.size > 0 ? [...silent, { lasting: Object.fromEntries(ended) }] : silent
    },
  }
}
