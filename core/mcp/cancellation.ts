// Cancels a call. In Node.js 20, an AbortSignal per call doubles the work of the garbage collector.

type Listener = (reason: Error) => void

export class Cancellation {
  reason: Error | undefined
  /** Most calls have one listener, without a Set. */
  #listener: Listener | undefined
  #more: Set<Listener> | undefined
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
    else if (!this.#listener && !this.#more?.has(listener)) this.#listener = listener
    else if (this.#listener !== listener) {
      this.#more ??= new Set()
      this.#more.add(listener)
    }
  }

  remove(listener: Listener): void {
    if (this.#listener === listener) this.#listener = undefined
    else this.#more?.delete(listener)
  }
}
