// Where a thread is asked to look at what it holds.

/** On the global object of a thread: looks, and stops where it is too much. */
export const LOOK = Symbol.for('mcp-host.look')
