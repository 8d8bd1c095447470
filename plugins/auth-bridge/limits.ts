// How often one address may begin what anybody may begin: sign-ins, registrations, documents to fetch. For this process alone;
// what is kept of it is bounded.
import { LRUCache } from 'lru-cache'
import { addressKey } from '../families/address/index.ts'

const WINDOW = 60_000
const MAX_ADDRESSES = 10_000
/** One machine has a whole network of them. */
const IPV6_PREFIX = 64

/** Whether an address may once more; `most` in a minute. */
export function createLimit(most: number): (ip: string) => boolean {
  const counts = new LRUCache<string, { count: number }>({ max: MAX_ADDRESSES, ttl: WINDOW })
  return ip => {
    const key = addressKey(ip, IPV6_PREFIX)
    const kept = counts.get(key)
    if (!kept) counts.set(key, { count: 1 })
    else kept.count++
    return (kept?.count ?? 1) <= most
  }
}
