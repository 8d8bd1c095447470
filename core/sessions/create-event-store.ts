// The event store above a `Store`. A stream is a record of its writer and a log, in the partition of its session.
import type { Found, LogStep, Outcome, RecordStep, SetStep, Store } from '../store/store.ts'
import { type EventStore, StreamFenced, type StreamState, type StreamWriter } from './event-store.ts'
import { partitionOf } from './session-id.ts'

export interface StreamBounds {
  /** Milliseconds after the last event. */
  readonly ttl: number
  /** The oldest are removed first. */
  readonly maxEvents: number
  /** The last message is always kept. */
  readonly maxBytes: number
}

/** A single writer. */
const SOLE: StreamWriter = { epoch: 0, facts: '' }

/** The names of a session's streams, by expiry. */
const NAMES = 'streams'
const NAMES_PER_READ = 1_000

const recordOf = (stream: string) => `stream:${stream}`

const epochOf = ({ fields }: Found) => Number(fields?.['epoch'] ?? 0)

/** After a fail-over two writers can have the same epoch. */
const numberTaken = (number: number) =>
  new Error(
    `another message of this stream has the number ${number}: the store has lost which node writes the stream, as a ` +
      'fail-over does, and two nodes wrote',
  )

export function createEventStore(store: Store, { ttl, maxEvents, maxBytes }: StreamBounds): EventStore {
  const keep = { messages: maxEvents, bytes: maxBytes }

  const fieldsOf = ({ bus, finished }: StreamWriter) => ({
    ...(bus === undefined ? {} : { bus }),
    ...(finished ? { finished: '1' } : {}),
  })

  const current = (stream: string, writer: StreamWriter): RecordStep => ({
    record: recordOf(stream),
    where: { epoch: String(writer.epoch) },
    set: fieldsOf(writer),
    ttl,
  })

  const addName = (stream: string): SetStep => ({
    sortedSet: NAMES,
    below: { now: 0 },
    put: { [stream]: { now: ttl } },
    ttl,
  })

  /** Throws if a newer writer has the stream, or if the store has lost this writer's claim and a previous writer has finished. */
  function refuseFenced(found: Found, { epoch }: StreamWriter) {
    const other = epochOf(found)
    if (other > epoch || (other < epoch && found.fields?.['finished'] === '1')) throw new StreamFenced()
  }

  /** Starts the log after `known`: earlier messages are gone, and readers detect a gap. */
  async function begin(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, when }: { known: number; message?: string; when: Pick<RecordStep, 'version' | 'where'> },
  ): Promise<Outcome> {
    const { epoch, facts } = writer
    const set = { bus: '', ...fieldsOf(writer), epoch: String(epoch), facts }
    return store.transact(partitionOf(digest), [
      { record: recordOf(stream), ...when, set, ttl },
      { log: stream, reset: known, ttl, ...(message === undefined ? {} : { append: [message], keep }) },
      addName(stream),
    ])
  }

  /**
   * Becomes the writer and keeps the log. False for a store of several machines, which can have lost a claim: its log can contain
   * messages of the previous writer that no client received.
   */
  async function takeOver(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, seen }: { known: number; message: string | undefined; seen: Found },
  ): Promise<boolean> {
    const { version = 0 } = seen
    if (store.shared !== 'host' || version === 0) return false
    const { epoch, facts } = writer
    const append = message === undefined ? {} : { after: known, append: [message], keep }
    const outcome = await store.transact(partitionOf(digest), [
      { record: recordOf(stream), version, set: { ...fieldsOf(writer), epoch: String(epoch), facts }, ttl },
      { log: stream, ttl, ...append },
      addName(stream),
    ])
    return outcome.done && (outcome.results[1]?.last ?? 0) >= known
  }

  /** `found`: the record of another writer, of a lost stream (version 0), or undefined for a lost part of the log. */
  async function beginAgain(
    digest: string,
    stream: string,
    writer: StreamWriter,
    { known, message, found }: { known: number; message?: string; found: Found | undefined },
  ) {
    const from = { known, ...(message === undefined ? {} : { message }) }
    for (let seen = found; ; ) {
      if (seen) refuseFenced(seen, writer)
      if (seen && (await takeOver(digest, stream, writer, { known, message, seen }))) return
      const when = seen ? { version: seen.version ?? 0 } : { where: { epoch: String(writer.epoch) } }
      const outcome = await begin(digest, stream, writer, { ...from, when })
      if (outcome.done) return
      seen = outcome.found
    }
  }

  async function append(digest: string, stream: string, message: string, known: number, writer = SOLE) {
    const log = { log: stream, after: known, append: [message], keep, ttl }
    const outcome = await store.transact(partitionOf(digest), [current(stream, writer), log])
    if (outcome.done) return known + 1
    const { step, found } = outcome
    if (step === 1 && (found.last ?? 0) > known) throw numberTaken(known + 1)
    await beginAgain(digest, stream, writer, { known, message, found: step === 0 ? found : undefined })
    return known + 1
  }

  async function state(digest: string, stream: string) {
    const [record, log] = await store.read(partitionOf(digest), [
      { record: recordOf(stream) },
      { log: stream, after: 0, bytes: 0 },
    ])
    if (!record) return undefined
    const { epoch, facts = '', before, bus = '', finished } = record.fields
    const found: StreamState = { epoch: Number(epoch), facts, last: log?.last ?? 0, bus, finished: finished === '1' }
    return { found, before, version: record.version }
  }

  const renew = (stream: string): LogStep => ({ log: stream, ttl })

  return {
    append,
    async after(digest, stream, seq, most) {
      const [page] = await store.read(partitionOf(digest), [
        { log: stream, after: seq, ...(most === undefined ? {} : { bytes: most }) },
      ])
      return page?.messages?.map((message, index) => ({ seq: seq + 1 + index, message }))
    },
    async drop(digest, stream) {
      const session = partitionOf(digest)
      for (;;) {
        const named =
          stream === undefined
            ? (await store.read(session, [{ sortedSet: NAMES, limit: NAMES_PER_READ }]))[0].members
            : [{ member: stream }]
        const names = named.map(({ member }) => member)
        await store.transact(session, [
          { sortedSet: NAMES, remove: names },
          ...names.flatMap(name => [
            { record: recordOf(name), delete: true },
            { log: name, delete: true },
          ]),
        ])
        if (stream !== undefined || names.length < NAMES_PER_READ) return
      }
    },
    ...(store.shared && {
      shared: {
        async open(digest, stream, writer, known = 0) {
          const outcome = await begin(digest, stream, writer, { known, when: { version: 0 } })
          if (outcome.done) return
          const { found } = outcome
          if (epochOf(found) !== writer.epoch) return beginAgain(digest, stream, writer, { known, found })
          const renewed = await store.transact(partitionOf(digest), [
            current(stream, { ...writer, bus: undefined }),
            renew(stream),
            addName(stream),
          ])
          if (renewed.done && (renewed.results[1]?.last ?? 0) >= known) return
          await beginAgain(digest, stream, writer, { known, found: renewed.done ? undefined : renewed.found })
        },
        state: async (digest, stream) => (await state(digest, stream))?.found,
        async claim(digest, stream, { epoch, facts }) {
          for (;;) {
            const seen = await state(digest, stream)
            if (!seen) return undefined
            const { found, version, before = found.facts } = seen
            if (found.epoch > epoch || (found.epoch === epoch && found.facts !== facts)) throw new StreamFenced()
            const isAgain = found.epoch === epoch
            const set = isAgain ? {} : { epoch: String(epoch), facts, before: found.facts }
            const outcome = await store.transact(partitionOf(digest), [
              { record: recordOf(stream), version, set, ttl },
              renew(stream),
            ])
            if (outcome.done) return { ...found, epoch, facts: isAgain ? before : found.facts }
          }
        },
        async finish(digest, stream, writer) {
          const outcome = await store.transact(partitionOf(digest), [
            {
              record: recordOf(stream),
              exists: true,
              most: { epoch: writer.epoch },
              set: fieldsOf({ ...writer, finished: true }),
              ttl,
            },
            renew(stream),
          ])
          if (!outcome.done && outcome.found.version !== 0) throw new StreamFenced()
        },
      },
    }),
  }
}
