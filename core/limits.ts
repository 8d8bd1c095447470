// What one client, connection or session may make the host hold: the fixed numbers of docs/operating.md, "Limits", in one
// place. Read wherever something of a client's is kept, echoed or looped over; what an operator sets is in the config.

/** Requests that a connection may send ahead of the one that is being answered. */
export const MAX_SENT_AHEAD = 100
/** Bytes that a reader must take within `http.writeTimeout`, where more than that waits for it. */
export const LEAST_TAKEN = 64 * 1024
/** Bytes that may wait for all readers together before those who take nothing go. */
export const MAX_WAITING_IN_ALL = 256 * 1024 * 1024
/** Characters from which an answer is kept as bytes while it waits: once, and outside the heap. */
export const LARGE_ANSWER = 64 * 1024
