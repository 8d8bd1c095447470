// Makes what many ask for once for all who wait, one thing at a time, and rests in between: a flood of readers gets a part of
// the process, and calls have the rest of it.
import { setTimeout as pause } from 'node:timers/promises'

/** Times as long as it took to make the last one: who floods gets a fifth of the process. */
const REST = 4
/** Milliseconds. */
const LONGEST_REST = 1_000

/** Gives what `make` makes of a key. Who asks while the same is being made, or waits for its turn, gets that one. */
export function shareInTurn<Key, Made>(make: (key: Key) => Promise<Made>): (key: Key) => Promise<Made> {
  const asked = new Map<Key, Promise<Made>>()
  let idle: Promise<void> = Promise.resolve()

  function begin(key: Key): Promise<Made> {
    let begun = 0
    const made = idle.then(() => {
      begun = performance.now()
      return make(key)
    })
    const rest = () => {
      asked.delete(key)
      const took = performance.now() - begun
      return pause(Math.min(LONGEST_REST, took * REST), undefined, { ref: false })
    }
    idle = made.then(rest, rest)
    asked.set(key, made)
    return made
  }

  return key => asked.get(key) ?? begin(key)
}
