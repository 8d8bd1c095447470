// How often one address may begin what anybody may begin: sign-ins, registrations, documents to fetch. For this process alone;
// what is kept of it is bounded.
import { LRUCache } from 'lru-cache'
import { addressKey } from '../../core/auth.ts'
import type { Clock } from '../../core/index.ts'

const WINDOW = 60_000
const MAX_KNOWN = 10_000
/** One machine has a whole network of them. */
const IPV6_PREFIX = 64

/** How often somebody came within a minute, this time too. */
function createCount(clock: Clock): (who: string) => number {
  const perf = { now: () => clock.monotonic() }
  const counts = new LRUCache<string, { count: number }>({ max: MAX_KNOWN, ttl: WINDOW, ttlResolution: 0, perf })
  return who => {
    const kept = counts.get(who)
    if (kept) return ++kept.count
    counts.set(who, { count: 1 })
    return 1
  }
}

/** Whether somebody may once more; `most` in a minute. */
export function createLimit(most: number, clock: Clock): (who: string) => boolean {
  const count = createCount(clock)
  return who => count(who) <= most
}

/** The same for the address of a client. `refused` hears of each that is refused, once a minute. */
export function createAddressLimit(
  most: number,
  clock: Clock,
  refused: (ip: string) => void = () => {},
): (ip: string) => boolean {
  const count = createCount(clock)
  return ip => {
    const times = count(addressKey(ip, IPV6_PREFIX))
    if (times === most + 1) refused(ip)
    return times <= most
  }
}
