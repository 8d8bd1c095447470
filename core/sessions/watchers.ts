// Who watches which resource. For change-feed.ts. Most resources have one watcher, who is kept without a set.
/** `Watcher` is no set itself. */
export class Watchers<Watcher extends object> {
  readonly #byUri = new Map<string, Watcher | Set<Watcher>>()

  add(uri: string, subscriber: Watcher): void {
    const found = this.#byUri.get(uri)
    if (found instanceof Set) found.add(subscriber)
    else if (found === undefined) this.#byUri.set(uri, subscriber)
    else if (found !== subscriber) this.#byUri.set(uri, new Set([found, subscriber]))
  }

  delete(uri: string, subscriber: Watcher): void {
    const found = this.#byUri.get(uri)
    if (found === subscriber) this.#byUri.delete(uri)
    if (!(found instanceof Set)) return
    found.delete(subscriber)
    if (found.size === 0) this.#byUri.delete(uri)
  }

  has(uri: string, subscriber: Watcher): boolean {
    const found = this.#byUri.get(uri)
    return found instanceof Set ? found.has(subscriber) : found === subscriber
  }

  /** Those of now: who comes or goes while they are told makes no difference. */
  of(uri: string): readonly Watcher[] {
    const found = this.#byUri.get(uri)
    if (found === undefined) return []
    return found instanceof Set ? [...found] : [found]
  }
}
