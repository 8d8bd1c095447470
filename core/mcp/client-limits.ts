// Fixed limits per client; see docs/limits.md.

import { HostError } from '../http/errors.ts'
import { addressKey } from '../http/guard.ts'
import { type User, userKey } from '../kernel/user.ts'

export const MAX_BATCH = 50
/** Bytes of a request id or progress token. */
export const MAX_ID = 1_024
/** JSON bytes and values of `clientInfo`, and of `capabilities`. */
export const MAX_CLIENT_FACT = 8_192
export const MAX_CLIENT_VALUES = 256
/** Bytes of a URI. */
export const MAX_URI = 8_192
/** Resources watched by one session or `subscriptions/listen`. */
export const MAX_WATCHED = 1_000
/** Bytes of the watched resources of one session: WATCH_COST and the URI for each. */
export const MAX_WATCHED_BYTES = 384 * 1_024
/** Cost of a watched resource in addition to its URI, bytes. */
export const WATCH_COST = 250
/** Total for all sessions of one owner, and for all its `subscriptions/listen` streams. */
export const MAX_WATCHED_BYTES_PER_OWNER = 8 * 1_024 * 1_024
/** Open `subscriptions/listen` streams of one caller. */
export const MAX_LISTENS_PER_CALLER = 100
/** Queued calls of one tool with a `concurrency`, and of one owner among them. */
export const MAX_WAITING_CALLS = 256
export const MAX_WAITING_CALLS_PER_OWNER = 32
/** Paused handlers of one tool per slot of its `concurrency`, and per owner. */
export const MAX_PAUSED_PER_SLOT = 100
export const MAX_PAUSED_PER_SLOT_AND_OWNER = 10
/** Client requests of one isolated call, and bytes of their responses, kept for further runs. */
export const MAX_REPLAYED_REQUESTS = 100
export const MAX_REPLAYED_BYTES = 4 * 1_024 * 1_024
/** Concurrent GETs for the same messages, so that a disconnected client can reconnect. */
export const MAX_OPEN_GETS = 3
/** Entries that `list` of one resource template can return, and its time, milliseconds. */
export const MAX_LISTED = 10_000
export const MAX_LIST_TIME = 10_000
/** JSON bytes of one entry, and of the entries on one page. */
export const MAX_LISTED_ENTRY = 64 * 1_024
export const MAX_LISTED_PAGE = 1_024 * 1_024
/** Characters of client text that an error or log line repeats. */
export const MAX_SHOWN = 1_000

export const fits = (text: string, bytes: number): boolean =>
  text.length <= bytes && (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes)

export const shown = (text: string): string => (text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`)

export function checkUri(uri: string): void {
  if (!fits(uri, MAX_URI)) throw new HostError('invalidParams', { detail: `a URI has at most ${MAX_URI} bytes` })
}

/** Maximum JSON bytes of a value in addition to its texts: a number, or quotes, colon, comma and brackets. */
const MAX_OVERHEAD = 33
/** Maximum JSON bytes for a UTF-16 unit of a text: an escape. */
const MAX_UNIT = 6

/** An upper bound of the JSON bytes of a value without serializing it; undefined if it has more than `most` values. */
function maxJsonBytes(value: unknown, most: number): number | undefined {
  let count = 0
  let units = 0
  const rest: unknown[] = [value]
  while (rest.length > 0) {
    if (++count > most) return undefined
    const next = rest.pop()
    if (typeof next === 'string') units += next.length
    if (typeof next !== 'object' || next === null) continue
    if (Array.isArray(next) && next.length > most) return undefined
    // `Object.values` would first copy all members of a large object.
    for (const key in next) {
      if (rest.length > most) return undefined
      if (!Array.isArray(next)) units += key.length
      rest.push((next as Record<string, unknown>)[key])
    }
  }
  return units * MAX_UNIT + count * MAX_OVERHEAD
}

/** Explains why a client fact is too large; undefined if it is not. */
export function sizeProblem(name: string, fact: unknown): string | undefined {
  if (fact === undefined) return undefined
  const bound = maxJsonBytes(fact, MAX_CLIENT_VALUES)
  if (bound !== undefined && (bound <= MAX_CLIENT_FACT || fits(JSON.stringify(fact), MAX_CLIENT_FACT))) return undefined
  return `${name} is too large: at most ${MAX_CLIENT_FACT} bytes of JSON, with at most ${MAX_CLIENT_VALUES} values`
}

export function checkClientInfo({ clientInfo, capabilities }: Readonly<Record<string, unknown>>): void {
  const detail = sizeProblem('clientInfo', clientInfo) ?? sizeProblem('capabilities', capabilities)
  if (detail !== undefined) throw new HostError('invalidParams', { detail })
}

/** IPv6 prefix length that counts as one caller. */
const NETWORK = 64

/** The owner for limits: the user, or the network of an anonymous caller. */
export const limitOwnerOf = ({ user, ip }: { readonly user: User | undefined; readonly ip: string }): string =>
  user ? userKey(user) : `address ${addressKey(ip, NETWORK)}`
