// A time limit for a promise.
import { systemClock, type Timer } from './clock.ts'

/**
 * Settles like `work`, or after this many milliseconds with what `late` returns or throws. `work` continues. A result that arrives
 * while the event loop is blocked still counts. The timer keeps the process alive, unless `ref` is false.
 */
export async function withTimeout<Value, Late>(
  work: Promise<Value>,
  milliseconds: number,
  late: () => Late,
  { clock = systemClock, ref = true } = {},
): Promise<Value | Late> {
  let timer: Timer | undefined
  const over = new Promise<void>(resolve => {
    timer = clock.setTimeout(() => void setImmediate(resolve), milliseconds)
    if (!ref) timer.unref()
  })
  try {
    return await Promise.race([work, over.then(late)])
  } finally {
    clock.clear(timer)
  }
}
