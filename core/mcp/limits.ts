// What one client or session may make the host hold: the fixed numbers of docs/operating.md, "Limits", but for those of a
// connection. Read wherever something of a client's is kept, echoed or looped over; what an operator
// sets is in the config.

import { LARGE_TEXT } from '../http/sse.ts'

/** Characters from which an answer is kept as bytes while it waits: once, and outside the heap. */
export const LARGE_ANSWER = LARGE_TEXT

/** Most entries of a batch. */
export const MAX_BATCH = 50
/** Bytes of a request's id, or of a progress token: they are repeated with every message that belongs to them. */
export const MAX_ID = 1_024
/** Bytes of `clientInfo` as JSON, and of `capabilities`; the values in each of them. */
export const MAX_CLIENT_FACT = 8_192
export const MAX_CLIENT_VALUES = 256
/** Bytes of a URI that a client names. */
export const MAX_URI = 8_192
/** Resources that one session or one `subscriptions/listen` may watch, and the bytes that they cost together. */
export const MAX_WATCHED = 1_000
/** What those may cost together, bytes: WATCH_COST and the URI, each. */
export const MAX_WATCHED_BYTES = 384 * 1_024
/** Bytes that a watched resource costs beside its URI: its places in the tables of who watches what. */
export const WATCH_COST = 250
/** The same bytes, of all sessions of one owner together, and of all its `subscriptions/listen`. */
export const MAX_WATCHED_BYTES_PER_OWNER = 8 * 1_024 * 1_024
/** `subscriptions/listen` streams that one caller may have open. */
export const MAX_LISTENS_PER_CALLER = 100
/** Calls of one tool that may wait for a place, where it has a `concurrency`; and those of one owner among them. */
export const MAX_WAITING_CALLS = 256
export const MAX_WAITING_CALLS_PER_OWNER = 32
/** Handlers of one tool that wait for their clients, for each slot of its `concurrency`; and those of one owner among them. */
export const MAX_PAUSED_PER_SLOT = 100
export const MAX_PAUSED_PER_SLOT_AND_OWNER = 10
/** Questions of one call of an isolated tool, and bytes of the responses: both are kept, for runs of the handler that follow. */
export const MAX_REPLAYED_QUESTIONS = 100
export const MAX_REPLAYED_BYTES = 4 * 1_024 * 1_024
/** GETs that may wait for the same messages at once: a laptop that slept is not locked out by its own past. */
export const MAX_OPEN_GETS = 3
/** Entries that `list` of one resource template can return, and its time, milliseconds. */
export const MAX_LISTED = 10_000
export const MAX_LIST_TIME = 10_000
/** JSON bytes of one such entry, and of those on one page. */
export const MAX_LISTED_ENTRY = 64 * 1_024
export const MAX_LISTED_PAGE = 1_024 * 1_024
/** Characters of what a client said that an error or a log line repeats. */
export const MAX_SHOWN = 1_000
