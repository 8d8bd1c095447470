// Ctrl-C: the first ends what runs in order, the second ends the command.
import type { CommandContext } from '../context.ts'

/** What shells expect of a program that was interrupted. */
const INTERRUPTED = 130

/**
 * Runs `work` with a signal that Ctrl-C or SIGTERM aborts. Once `work` has ended on it, so does the command, with the exit
 * code of an interruption: the promise then stays pending.
 */
export async function interruptible<T>(
  { process: events, stderr, exit }: CommandContext,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController()
  const interrupt = () => {
    if (over.signal.aborted) exit(INTERRUPTED)
    over.abort(new Error('interrupted'))
  }
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const signal of signals) events.on(signal, interrupt)
  try {
    return await work(over.signal)
  } catch (error) {
    if (!over.signal.aborted) throw error
    stderr.write('mcp-host: cancelled\n')
    exit(INTERRUPTED)
    return new Promise<never>(() => undefined)
  } finally {
    for (const signal of signals) events.off(signal, interrupt)
  }
}
