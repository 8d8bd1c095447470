// Limits concurrent requests to one API, fairly between callers.

import { FairQueue, type Queued } from '../../core/internal.ts'
import type { StepLimit } from './request-send.ts'

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

export function createSlots(most: number) {
  const queue = new FairQueue<Waiting>()

  return {
    /** Resolves with a slot; undefined if the call has a slot already. `release` must follow. */
    take(owner: string, limit: StepLimit): Promise<void> | undefined {
      if (queue.places < most) {
        queue.take(owner)
        return undefined
      }
      return new Promise((resolve, reject) => {
        const waiting = new Waiting(() => {
          queue.delete(owner, waiting)
          queue.take(owner)
          resolve()
        })
        limit.begin({
          stop(reason) {
            if (queue.delete(owner, waiting)) reject(reason)
          },
        })
        queue.add(owner, waiting)
      })
    },
    release(owner: string): void {
      queue.leave(owner)
      if (queue.places < most) queue.next(() => true)?.begin()
    },
  }
}
