// The default event store: in this process, with limits per stream and in total.
import type { EventStore, StoredEvent } from './event-store.ts'

/** Limits of the store. Bytes include `EVENT_COST` and `STREAM_COST`. */
export interface MemoryLimits {
  /** Events per stream, oldest removed first. Default 10,000. */
  readonly events: number
  /** Bytes per stream; the last event always stays. Default 4 MiB. */
  readonly bytes: number
  /** Bytes of all streams, least recently written removed first. Default 64 MiB. */
  readonly total: number
  /** Milliseconds after the last event. Default 5 minutes. */
  readonly lifetime: number
}

const MIB = 1024 * 1024
/** Bytes of an event and of a stream besides the text; measured by test/guards/store-bytes.slow.ts. */
export const EVENT_COST = 80
export const STREAM_COST = 850
const DEFAULTS: MemoryLimits = { events: 10_000, bytes: 4 * MIB, total: 64 * MIB, lifetime: 300_000 }

function takeBytes(events: readonly StoredEvent[], from: number, most: number): StoredEvent[] {
  let end = from
  for (let bytes = 0; end < events.length; end++) {
    bytes += Buffer.byteLength(events[end]?.message ?? '')
    if (end > from && bytes > most) break
  }
  return events.slice(from, end)
}

interface StoredStream {
  readonly session: string
  readonly name: string
  readonly events: StoredEvent[]
  last: number
  bytes: number
  expires: number
}

/** Counts two bytes per character unless all are ASCII. */
export const costOf = (message: string): number =>
  EVENT_COST + (Buffer.byteLength(message) === message.length ? 1 : 2) * message.length

export function createMemoryEventStore(limits: Partial<MemoryLimits> = {}, now: () => number = Date.now): EventStore {
  const { events: maxEvents, bytes: maxBytes, total: maxTotal, lifetime } = { ...DEFAULTS, ...limits }
  const sessions = new Map<string, Map<string, StoredStream>>()
  const byAge = new Set<StoredStream>()
  let total = 0

  function forget(stream: StoredStream) {
    byAge.delete(stream)
    total -= stream.bytes
    const streams = sessions.get(stream.session)
    streams?.delete(stream.name)
    if (streams?.size === 0) sessions.delete(stream.session)
  }

  function sweep() {
    for (const stream of byAge) {
      if (stream.expires > now() && total <= maxTotal) return
      forget(stream)
    }
  }

  function find(session: string, name: string, known: number): StoredStream {
    const streams = sessions.get(session) ?? new Map<string, StoredStream>()
    sessions.set(session, streams)
    const found = streams.get(name)
    if (found) return found
    const stream = { session, name, events: [], last: known, bytes: 0, expires: 0 }
    streams.set(name, stream)
    grow(stream, STREAM_COST)
    return stream
  }

  function grow(stream: StoredStream, bytes: number) {
    stream.bytes += bytes
    total += bytes
  }

  const isTooLarge = ({ events, bytes }: StoredStream) =>
    events.length > 1 && (events.length > maxEvents || bytes > maxBytes)

  return {
    append(session, name, message, known) {
      sweep()
      const stream = find(session, name, known)
      stream.last++
      stream.events.push({ seq: stream.last, message })
      grow(stream, costOf(message))
      stream.expires = now() + lifetime
      byAge.delete(stream)
      byAge.add(stream)
      while (isTooLarge(stream)) grow(stream, -costOf(stream.events.shift()?.message ?? ''))
      sweep()
      return stream.last
    },
    after(session, name, seq, most) {
      sweep()
      const stream = sessions.get(session)?.get(name)
      if (!stream || seq > stream.last) return undefined
      const first = stream.events[0]?.seq ?? stream.last + 1
      if (seq + 1 < first) return undefined
      if (most === 0) return []
      const from = seq + 1 - first
      return most === undefined ? stream.events.slice(from) : takeBytes(stream.events, from, most)
    },
    drop(session, name) {
      const streams = sessions.get(session)
      for (const stream of streams?.values() ?? []) if (name === undefined || stream.name === name) forget(stream)
    },
  }
}
