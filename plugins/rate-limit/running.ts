// How many calls of one key run at once, in this process.

export interface Running {
  /** False, and nothing is taken, where as many run as may. */
  enter(key: string): boolean
  leave(key: string): void
  /** Calls that run now. */
  readonly count: number
}

export function createRunning(most: number): Running {
  const running = new Map<string, number>()
  return {
    enter(key) {
      const count = running.get(key) ?? 0
      if (count >= most) return false
      running.set(key, count + 1)
      return true
    },
    leave(key) {
      const count = (running.get(key) ?? 0) - 1
      if (count > 0) running.set(key, count)
      else running.delete(key)
    },
    get count() {
      return [...running.values()].reduce((sum, count) => sum + count, 0)
    },
  }
}
