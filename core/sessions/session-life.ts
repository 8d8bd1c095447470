// The signal of a session's life. For registry.ts.
import type { Session } from './session.ts'

/** The signal of a session's life, made only for those who look at it. */
export function createLife() {
  let controller: AbortController | undefined
  let session: Session | undefined
  const abort = () => controller?.abort(new Error('the session is over'))
  return {
    signal(): AbortSignal {
      if (!controller) session?.onDispose(abort)
      controller ??= new AbortController()
      return controller.signal
    },
    endWith(begun: Session) {
      session = begun
      if (controller) session.onDispose(abort)
    },
  }
}
