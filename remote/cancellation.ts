// Cancels work in progress. Cheaper than an AbortSignal, because each call creates one.

type Listener = (reason: Error) => void

export class Cancellation {
  reason: Error | undefined
  #listeners: Set<Listener> | undefined

  get aborted(): boolean {
    return this.reason !== undefined
  }

  abort(reason: Error): void {
    if (this.reason) return
    this.reason = reason
    const listeners = this.#listeners
    this.#listeners = undefined
    for (const listener of listeners ?? []) listener(reason)
  }

  /** Calls the listener at once if it is aborted. */
  add(listener: Listener): void {
    if (this.reason) listener(this.reason)
    else {
      this.#listeners ??= new Set()
      this.#listeners.add(listener)
    }
  }

  remove(listener: Listener): void {
    this.#listeners?.delete(listener)
  }
}

/** Maximum timer delay in Node.js, milliseconds. */
const MAX_TIMER = 2 ** 31 - 1

/** Rejects when one of them aborts. */
export function sleep(milliseconds: number, ...cancellations: readonly Cancellation[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer)
      for (const one of cancellations) one.remove(abort)
    }
    const abort = (reason: Error): void => {
      end()
      reject(reason)
    }
    const timer = setTimeout(
      () => {
        end()
        resolve()
      },
      Math.min(milliseconds, MAX_TIMER),
    )
    for (const one of cancellations) one.add(abort)
  })
}
