// The in-memory bus, for one process.
import type { Bus } from './bus.ts'

const KEPT = 1_000

/** Creates a bus whose positions are valid for this run only. */
export function createMemoryBus(node: string): Bus {
  const listeners = new Set<(text: string | undefined, position?: string) => void>()
  const waiting: string[] = []
  let kept: string[] = []
  let last = Date.now() * 1_000
  let isDelivering = false
  let hasLeft = false
  let receiver: ((text: string) => void) | undefined

  function deliver(text: string) {
    kept.push(text)
    if (kept.length > 2 * KEPT) kept = kept.slice(-KEPT)
    const position = String(++last)
    for (const listener of [...listeners]) listener(text, position)
  }

  return {
    shared: false,
    node,
    publish(text) {
      waiting.push(text)
      // Texts that a listener publishes are queued, so all listeners receive the same order.
      if (isDelivering) return
      isDelivering = true
      try {
        for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) deliver(next)
      } finally {
        isDelivering = false
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    get position() {
      return String(last)
    },
    isAfter: (one, other) => Number(one) > Number(other),
    async since(position) {
      const count = last - Number(position)
      if (!(count >= 0 && count <= kept.length)) return undefined
      return kept
        .slice(kept.length - count)
        .map((text, index) => ({ text, position: String(last - count + index + 1) }))
    },
    async send(to, text) {
      if (to !== node || hasLeft) return false
      receiver?.(text)
      return true
    },
    receive(listener) {
      receiver = listener
    },
    isAlive: async other => other === node && !hasLeft,
    async leave() {
      hasLeft = true
    },
  }
}
