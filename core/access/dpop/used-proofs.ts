// Which proofs were used already (RFC 9449 section 11.1): each counts once, for all nodes, for as long as its time would be good.
// In the grant store where several nodes share one, else in this process.
import { HostError } from '../../http/errors.ts'
import { GRANT_KINDS, type GrantStore } from '../grant-store.ts'

/** About 120 bytes each: with a `maxAge` of 60 s, some 5,000 requests a second. */
const MOST = 400_000

/** Whether a proof is used for the first time; `ttl` in milliseconds. Rejects, or throws, where nobody can tell. */
export type UseOnce = (id: string, ttl: number) => boolean | Promise<boolean>

/**
 * In this process. What is past its time goes as others come, in their order: an entry stays for no longer than the longest `ttl`.
 * Where it is full it throws a HostError `unavailable`: what it forgot could be used again. `most`, `now`: for tests.
 */
export function createUsedProofs(most = MOST, now: () => number = Date.now): UseOnce {
  const used = new Map<string, number>()

  return (id, ttl) => {
    const time = now()
    for (const [oldest, until] of used) {
      if (until > time) break
      used.delete(oldest)
    }
    const until = used.get(id)
    if (until !== undefined && until > time) return false
    if (used.size >= most) throw full()
    used.delete(id)
    used.set(id, time + ttl)
    return true
  }
}

const full = () =>
  new HostError('unavailable', {
    detail: 'too many proofs (DPoP) were used within the last minutes',
    reason: `the ${MOST} proofs that this process remembers are all recent`,
    headers: { 'Retry-After': '5' },
  })

/** In a store that nodes share. */
export const usedIn =
  (store: GrantStore): UseOnce =>
  (id, ttl) =>
    store.add(`${GRANT_KINDS.granted}dpop:${id}`, '1', ttl)
