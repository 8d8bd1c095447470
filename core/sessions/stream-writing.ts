// How a stream's messages get into the store: to one that every node uses, again and again with the same number until
// it is known that they are there, so that nothing is stored twice and nothing is passed over.
import { setTimeout as pause } from 'node:timers/promises'
import { isUnavailable } from '../http/errors.ts'
import type { RequestId } from '../mcp/protocol.ts'
import { type EventStore, StreamFenced, type StreamWriter } from './event-store.ts'

/** How long the messages of a stream wait for a store that does not answer, milliseconds. */
export const STORE_PATIENCE = 10_000
const FIRST_PAUSE = 50
const LONGEST_PAUSE = 1_000
/** How long the end of a stream is worth telling the store, milliseconds. */
const END_PATIENCE = 300_000

/** What is kept beside the events of a stream: who writes it, and what it is to answer. */
export interface StreamFacts {
  readonly node: string
  /** None: it carries what belongs to no call. */
  readonly requests: readonly RequestId[]
}

export const writeFacts = (facts: StreamFacts): string => JSON.stringify(facts)

export const readFacts = (text: string): StreamFacts => JSON.parse(text)

export interface WriterSettings {
  readonly epoch: number
  readonly facts: string
  /** Where on the change bus the stream begins. */
  readonly place?: string
  /** True while this node goes: streams without an answer are left for other nodes. */
  leaving(): boolean
  /** Another node writes the stream now; its readers here stay, and hear nothing. Absent: they are told to come back. */
  fenced?(): void
  /** Called when there is more in the store. */
  written(stream: string): void
}

export interface StreamPlace {
  readonly store: EventStore
  readonly session: string
  readonly stream: string
  /** The number of the last message. */
  readonly known: number
}

export interface StreamWriting {
  /** Makes the stream known. Rejects where the store cannot. */
  open(known: number): Promise<void>
  append(message: string, known: number, place: string | undefined, last: boolean): number | Promise<number>
  /** Tells the store that no more will come, unless the last message did. Not waited for. */
  finish(): void
  /** Removes what is stored, as soon as the store can be asked; resolves when it did, or gave up. */
  drop(): Promise<void>
  isFenced(error: unknown): boolean
}

/** Tries again while the store cannot be asked. */
async function persist<Value>(act: () => Value | Promise<Value>, patience: number): Promise<Value> {
  const end = performance.now() + patience
  for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
    try {
      return await act()
    } catch (error) {
      if (!isUnavailable(error) || performance.now() > end) throw error
    }
    await pause(wait, undefined, { ref: false })
  }
}

const remove = ({ store, session, stream }: Omit<StreamPlace, 'known'>): Promise<void> =>
  persist(() => store.drop(session, stream), END_PATIENCE).catch(() => undefined)

/** A stream that no other node knows: what the store refuses is refused. */
const ownWriting = ({ store, session, stream }: StreamPlace): StreamWriting => ({
  open: () => Promise.resolve(),
  append: (message, known) => store.append(session, stream, message, known),
  finish() {},
  drop: () => remove({ store, session, stream }),
  isFenced: () => false,
})

function sharedWriting({ store, session, stream }: StreamPlace, writer: WriterSettings): StreamWriting {
  const { epoch, facts, written } = writer
  const base: StreamWriter = { epoch, facts }
  let ended = false
  return {
    async open(known) {
      await store.shared?.open(session, stream, { ...base, bus: writer.place }, known)
    },
    async append(message, known, place, last) {
      const facts = place === undefined && !last ? base : { ...base, bus: place, finished: last }
      const seq = await persist(() => store.append(session, stream, message, known, facts), STORE_PATIENCE)
      ended ||= last
      written(stream)
      return seq
    },
    finish() {
      if (ended) return
      const told = persist(() => store.shared?.finish(session, stream, base), END_PATIENCE)
      void told.then(
        () => written(stream),
        () => undefined,
      )
    },
    drop: () => remove({ store, session, stream }),
    isFenced: StreamFenced.is,
  }
}

export const createStreamWriting = (place: StreamPlace, writer: WriterSettings | undefined): StreamWriting =>
  writer ? sharedWriting(place, writer) : ownWriting(place)
