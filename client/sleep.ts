// Waits, and ends at once when told to.
import { AuthError } from './errors.ts'

/** The longest time of a timer, milliseconds: Node fires a longer one at once. */
export const MAX_TIMER = 2 ** 31 - 1

/** Resolves after `ms` milliseconds, at most `MAX_TIMER`; rejects with an AuthError (`aborted`, or the signal's own) when `signal` aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      const { reason } = signal
      reject(AuthError.is(reason) ? reason : new AuthError('the wait was cancelled', { code: 'aborted' }))
    }
    const timer = setTimeout(
      () => {
        signal.removeEventListener('abort', stop)
        resolve()
      },
      Math.min(ms, MAX_TIMER),
    )
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
