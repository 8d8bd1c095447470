// What one connection, and all of them together, may make the process hold, and the text of one body: the fixed numbers of
// docs/operating.md, "Limits", that are no client's or session's (core/mcp/client-limits.ts).

/** Requests refused behind an unfinished response before the connection closes without waiting for it. */
export const MAX_PIPELINED = 10
/** Bytes that a reader must take within `http.writeTimeout`, where more than that waits for it. */
export const LEAST_TAKEN = 64 * 1024
/**
 * Bytes that may wait for the reader of a stream when the next message comes; past it the stream is closed. Less than the
 * event store keeps of a stream, so that whoever comes back finds all that waited.
 */
export const MAX_WAITING = 1024 * 1024
/** Bytes that may wait for all readers together before those who take nothing go. */
export const MAX_WAITING_IN_ALL = 256 * 1024 * 1024

/** Characters from which a text is kept as bytes while it waits for its reader: once, and outside the heap. */
export const LARGE_TEXT = 64 * 1024

/** Deepest nesting of arrays and objects in a body. */
export const MAX_DEPTH = 128
/**
 * Objects and lists of a body, whatever its size; a longer one has one for each so many characters. Four megabytes of `{},`
 * are 1.4 million, which JSON.parse alone holds the event loop for, and no data is like that.
 */
export const OBJECTS_IN_ANY_BODY = 100_000
export const CHARACTERS_PER_OBJECT = 8
/** Members of one object, and characters of a key: past these, a map of distinct keys costs more than all else of a body. */
export const MAX_MEMBERS = 100_000
export const MAX_KEY = 8_192
