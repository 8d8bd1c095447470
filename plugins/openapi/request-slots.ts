// Limits concurrent requests to one API, fairly between callers.

import type { Queued } from '../../core/internal.ts'
import { FairQueue } from '../../core/internal.ts'

class Waiting implements Queued {
  older?: this | undefined
  newer?: this | undefined
  linked?: boolean
  readonly returns = false
  readonly begin: () => void

  constructor(begin: () => void) {
    this.begin = begin
  }
}

export interface Slots {
  /** Resolves with a slot; undefined: it has one already. `release` must follow. */
  take(owner: string, onStop: (stop: (reason: Error) => void) => () => void): Promise<void> | undefined
  release(owner: string): void
}

export function createSlots(most: number): Slots {
  const queue = new FairQueue<Waiting>()

  function beginNext() {
    if (queue.places < most) queue.next(() => true)?.begin()
  }

  return {
    take(owner, onStop) {
      if (queue.places < most) {
        queue.take(owner)
        return undefined
      }
      return new Promise((resolve, reject) => {
        const waiting = new Waiting(() => {
          leave()
          queue.delete(owner, waiting)
          queue.take(owner)
          resolve()
        })
        const leave = onStop(reason => {
          queue.delete(owner, waiting)
          reject(reason)
        })
        queue.add(owner, waiting)
      })
    },
    release(owner) {
      queue.leave(owner)
      beginNext()
    },
  }
}
