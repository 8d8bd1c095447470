// Limits per minute on sign-ins, registrations and fetched documents, per process and with bounded memory.
import { LRUCache } from 'lru-cache'
import { addressKey } from '../../core/auth.ts'
import { lruLimit } from '../../core/internal.ts'
import type { Clock } from '../../core/plugin.ts'

const WINDOW = 60_000
const MAX_KNOWN = 10_000
/** One machine usually has a whole /64 network. */
const IPV6_PREFIX = 64

/** Creates a limit: false above `most` calls per key and minute. `refused` runs once per key and minute. */
export function createLimit(most: number, clock: Clock, refused: (key: string) => void = () => {}) {
  const lifetime = { ttl: WINDOW, ttlResolution: 0, perf: { now: () => clock.monotonic() } }
  const counts = new LRUCache<string, { count: number }>({ ...lruLimit(MAX_KNOWN), ...lifetime })
  return (key: string): boolean => {
    const kept = counts.get(key) ?? { count: 0 }
    if (kept.count === 0) counts.set(key, kept)
    kept.count++
    if (kept.count === most + 1) refused(key)
    return kept.count <= most
  }
}

export function createAddressLimit(most: number, clock: Clock, refused?: (address: string) => void) {
  const may = createLimit(most, clock, refused)
  return (ip: string): boolean => may(addressKey(ip, IPV6_PREFIX))
}
