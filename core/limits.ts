// What one client, connection or session may make the host hold: the fixed numbers of docs/operating.md, "Limits", in one
// place. Read wherever something of a client's is kept, echoed or looped over; what an operator sets is in the config.

/** Requests that a connection may send ahead of the one that is being answered. */
export const MAX_SENT_AHEAD = 100
