// Repeats an action in the background of a test.
import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Repeats `act` until `body` settles, and returns the value of `body`. Timers run between two rounds even if `act` never waits,
 * so the time-outs of `body` and of Mocha still fire. An error of `act` ends the rounds and is thrown once `body` has settled.
 */
export async function repeatDuring<Value>(act: () => Promise<unknown>, body: () => Promise<Value>): Promise<Value> {
  let isOver = false
  const repeating = (async () => {
    while (!isOver) {
      await act()
      await nextTurn()
    }
  })()
  // Thrown below; until then it is not an unhandled rejection.
  repeating.catch(() => undefined)
  try {
    return await body()
  } finally {
    isOver = true
    await repeating
  }
}
