// Where a thread tells what it holds.

/** On the global object of a thread: the bytes that it holds, and whether to throw garbage away before. */
export const HELD = Symbol.for('mcp-host.held')
