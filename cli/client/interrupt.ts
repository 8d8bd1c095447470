// Ctrl-C: the first ends what runs in order, the second ends the process.

/** What shells expect of a program that was interrupted. */
const INTERRUPTED = 130

/**
 * Runs `work` with a signal that Ctrl-C or SIGTERM aborts. Once `work` has ended on it, so does the process: a login
 * that nobody waits for any more would go on.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const over = new AbortController()
  const interrupt = () => {
    if (over.signal.aborted) process.exit(INTERRUPTED)
    over.abort(new Error('interrupted'))
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) process.on(signal, interrupt)
  try {
    return await work(over.signal)
  } catch (error) {
    if (!over.signal.aborted) throw error
    process.stderr.write('mcp-host: cancelled\n')
    return process.exit(INTERRUPTED)
  } finally {
    for (const signal of signals) process.off(signal, interrupt)
  }
}
