// Reads what a store has of a stream, for clients that come back: a page at a time, and few pages of a store at once,
// of one owner fewer still. However many come back, little is held for them, and the others' turn comes.
import type { EventStream } from '../http/sse.ts'
import type { EventStore, StoredEvent } from './event-store.ts'

/** Bytes of the messages of a page, where it has more than one. */
export const PAGE_BYTES = 262_144
/** Pages of a store that are read at once in this process, for everybody and for one owner. */
export const MAX_PAGES = 8
export const MAX_PAGES_PER_OWNER = 2

/** Where a reader is in a stream. */
export interface ReadPlace {
  readonly store: EventStore
  readonly session: string
  readonly stream: string
  /** The number of the last message that it has. */
  readonly seq: number
  /** Whose reads these are: all of one owner's take turns. */
  readonly owner: string
}

/** Whose turn it is to read a store. */
class Turns {
  readonly #underWay = new Map<string, number>()
  /** Owners in the order of their turns, each with what it waits for. */
  readonly #waiting = new Map<string, Array<() => void>>()
  #total = 0

  #isFree(owner: string): boolean {
    return this.#total < MAX_PAGES && (this.#underWay.get(owner) ?? 0) < MAX_PAGES_PER_OWNER
  }

  #begin(owner: string) {
    this.#total++
    this.#underWay.set(owner, (this.#underWay.get(owner) ?? 0) + 1)
  }

  /** Resolves when a page may be read; `end` is to be called then. */
  async begin(owner: string): Promise<void> {
    if (this.#isFree(owner)) return this.#begin(owner)
    const tasks = this.#waiting.get(owner) ?? []
    this.#waiting.set(owner, tasks)
    await new Promise<void>(resolve => void tasks.push(resolve))
  }

  end(owner: string) {
    this.#total--
    const left = (this.#underWay.get(owner) ?? 1) - 1
    if (left > 0) this.#underWay.set(owner, left)
    else this.#underWay.delete(owner)
    for (const [next, tasks] of this.#waiting) {
      if (!this.#isFree(next)) continue
      const task = tasks.shift()
      // To the end of the line.
      this.#waiting.delete(next)
      if (tasks.length > 0) this.#waiting.set(next, tasks)
      this.#begin(next)
      task?.()
    }
  }
}

/** One that does not answer holds up no other. */
const turnsOf = new WeakMap<EventStore, Turns>()

function turnsAt(store: EventStore): Turns {
  const turns = turnsOf.get(store) ?? new Turns()
  turnsOf.set(store, turns)
  return turns
}

/**
 * The next messages after a place, once it is their turn: none where there are none, or nobody wants them any more by then;
 * undefined where something after the place is gone.
 */
export async function readPage(
  { store, session, stream, seq, owner }: ReadPlace,
  isWanted: () => boolean,
): Promise<readonly StoredEvent[] | undefined> {
  const turns = turnsAt(store)
  await turns.begin(owner)
  try {
    return isWanted() ? await store.after(session, stream, seq, PAGE_BYTES) : []
  } finally {
    turns.end(owner)
  }
}

/** Whether nothing after a place is gone; no message is read for it. */
export const isWholeAfter = async (store: EventStore, session: string, stream: string, seq: number): Promise<boolean> =>
  (await store.after(session, stream, seq, 0)) !== undefined

export interface Sending {
  /** Hears the number of each message that was sent. */
  readonly sent?: (seq: number) => void
  /** Once it has this number, it does not ask for more. */
  readonly until?: number
  /** Ends when it is false, as with a reader that goes. */
  readonly isWanted?: () => boolean
}

/** Sends what is stored after a place as fast as it is read; false where something is gone, or the reader is. */
export async function sendStored(
  { seq, ...place }: ReadPlace,
  reader: EventStream,
  { sent, until = Number.POSITIVE_INFINITY, isWanted = () => true }: Sending = {},
): Promise<boolean> {
  let last = seq
  do {
    const page = await readPage({ ...place, seq: last }, () => !reader.closed && isWanted())
    if (!page) return false
    for (const { seq: next, message } of page) {
      if (!reader.send(message, `${place.stream}.${next}`)) return false
      last = next
      sent?.(next)
      await reader.drained()
    }
    if (page.length === 0) break
  } while (last < until)
  return !reader.closed
}
