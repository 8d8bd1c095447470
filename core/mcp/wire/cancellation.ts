// Cancels a call. In Node.js 20, an AbortSignal per call doubles the work of the garbage collector.

type Listener = (reason: Error) => void

export class Cancellation {
  reason: Error | undefined
  /** The first listener: most calls have no other. */
  #listener: Listener | undefined
  /** With free places: tables of a Set, and elements of an array that shrinks, stay in memory until a full garbage collection. */
  #more: Array<Listener | undefined> | undefined
  #controller: AbortController | undefined

  static of(signal: AbortSignal): Cancellation {
    const cancellation = new Cancellation()
    const abort = () => cancellation.abort(signal.reason)
    if (signal.aborted) abort()
    else signal.addEventListener('abort', abort, { once: true })
    return cancellation
  }

  get aborted(): boolean {
    return this.reason !== undefined
  }

  /** Created on demand. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController()
      if (this.reason) this.#controller.abort(this.reason)
    }
    return this.#controller.signal
  }

  abort(reason: Error): void {
    if (this.reason) return
    this.reason = reason
    const listeners = [this.#listener, ...(this.#more ?? [])]
    this.#listener = this.#more = undefined
    this.#controller?.abort(reason)
    for (const listener of listeners) listener?.(reason)
  }

  /** Calls the listener at once if it is aborted. */
  add(listener: Listener): void {
    if (this.reason) listener(this.reason)
    else if (this.#listener === listener || this.#more?.includes(listener)) return
    else if (!this.#listener) this.#listener = listener
    else if (this.#more) {
      const free = this.#more.indexOf(undefined)
      this.#more[free === -1 ? this.#more.length : free] = listener
    } else this.#more = [listener]
  }

  remove(listener: Listener): void {
    if (this.#listener === listener) this.#listener = undefined
    else if (this.#more) {
      const at = this.#more.indexOf(listener)
      if (at !== -1) this.#more[at] = undefined
    }
  }
}
