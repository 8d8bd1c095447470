// How a process that serves tells the one that started it, `mcp-host dev` at the terminal or the primary of workers.

/** Resolves once the parent has it, or is gone. */
export function tellParent(message: object): Promise<void> {
  return new Promise(resolve => {
    if (process.connected && process.send) process.send(message, () => resolve())
    else resolve()
  })
}
