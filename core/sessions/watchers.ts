// Who watches which resource. For change-feed.ts. Most resources have one watcher, who is kept without a set.
import type { Subscriber } from './change-feed.ts'

export class Watchers {
  readonly #byUri = new Map<string, Subscriber | Set<Subscriber>>()

  add(uri: string, subscriber: Subscriber): void {
    const found = this.#byUri.get(uri)
    if (found instanceof Set) found.add(subscriber)
    else if (found === undefined) this.#byUri.set(uri, subscriber)
    else if (found !== subscriber) this.#byUri.set(uri, new Set([found, subscriber]))
  }

  delete(uri: string, subscriber: Subscriber): void {
    const found = this.#byUri.get(uri)
    if (found === subscriber) this.#byUri.delete(uri)
    if (!(found instanceof Set)) return
    found.delete(subscriber)
    if (found.size === 0) this.#byUri.delete(uri)
  }

  has(uri: string, subscriber: Subscriber): boolean {
    const found = this.#byUri.get(uri)
    return found instanceof Set ? found.has(subscriber) : found === subscriber
  }

  /** Those of now: who comes or goes while they are told makes no difference. */
  of(uri: string): readonly Subscriber[] {
    const found = this.#byUri.get(uri)
    if (found === undefined) return []
    return found instanceof Set ? [...found] : [found]
  }
}
