// Limits each plugin's part of startup and shutdown, so that a promise that never settles is reported. For set-up.ts.
import { systemClock, type Timer } from '../http/clock.ts'

/** How long each of `setup`, `serving` and `starting` may take, milliseconds. */
export const START_PATIENCE = 60_000
/** How long each `closing` task may take, milliseconds. */
export const CLOSE_PATIENCE = 5_000

/** Rejects if `part` takes longer than `limit` milliseconds. The timer keeps the process alive until then. */
export async function inTime(part: () => void | Promise<void>, limit: number, clock = systemClock): Promise<void> {
  const running = part()
  if (running === undefined) return
  let timer: Timer | undefined
  const late = new Promise<never>((_, reject) => {
    const why = `it has not ended after ${limit / 1_000} s; something that it waits for does not come`
    timer = clock.setTimeout(() => reject(new Error(why)), limit)
  })
  try {
    await Promise.race([running, late])
  } finally {
    clock.clear(timer)
  }
}
