// Which proofs were used already (RFC 9449 section 11.1): each counts once, for all nodes, for as long as its time would be good.
// In the grant store where several nodes share one, else in this process; and no key and no user takes the place of the others.
import { createHash } from 'node:crypto'
import { HostError } from '../../http/errors.ts'
import { GRANT_KINDS, type GrantStore } from '../grant-store.ts'

/** About 200 bytes each: with a `maxAge` of 60 s, some 5,000 requests a second. */
const MOST = 400_000
/**
 * One key, and one user with all keys, may have so many parts of what is free: 44,445 and 80,000 where nobody else is, less
 * where many have much, so that there is room for whoever comes next.
 */
const PARTS = { key: 8, user: 4 } as const

const RETRY_AFTER = { 'Retry-After': '5' }

/** A proof that is good, but for whether it was used. */
export interface UsedProof {
  /** Of this proof and key alone. */
  readonly id: string
  /** Milliseconds for which it is to be remembered. */
  readonly ttl: number
  /** The thumbprint of its key. */
  readonly thumbprint: string
  /** Names the user whose token it came with; of any length. */
  readonly user: string
}

/**
 * Whether a proof is used for the first time. Rejects, or throws, with a HostError: `tooManyRequests` where its key or its user
 * has used too many of late, another where nobody can tell.
 */
export type UseOnce = (proof: UsedProof) => boolean | Promise<boolean>

/** Proofs of one key, or of one user, that are remembered. */
interface Tally {
  readonly name: string
  count: number
}

interface Used {
  readonly until: number
  readonly tallies: readonly Tally[]
}

const tooMany = (whose: string, count: number) =>
  new HostError('tooManyRequests', {
    detail: `too many proofs (DPoP) of ${whose} were used of late; wait, and send fewer requests a second`,
    reason: `${count} proofs of ${whose} are remembered by this process, which is all that it may have`,
    headers: RETRY_AFTER,
  })

const full = (most: number) =>
  new HostError('unavailable', {
    detail: 'too many proofs (DPoP) were used within the last minutes',
    reason: `the ${most} proofs that this process remembers are all recent`,
    headers: RETRY_AFTER,
  })

/**
 * In this process. What is past its time goes as others come, in their order: an entry stays for no longer than the longest `ttl`.
 * What still counts is never forgotten, for it could be used again: who has too many is refused. `most`, `now`: for tests.
 */
export function createUsedProofs(most = MOST, now: () => number = Date.now): UseOnce {
  const used = new Map<string, Used>()
  const tallies = new Map<string, Tally>()

  function forget(id: string, entry: Used) {
    used.delete(id)
    for (const tally of entry.tallies) {
      tally.count--
      if (tally.count === 0) tallies.delete(tally.name)
    }
  }

  const tallyOf = (name: string): Tally => tallies.get(name) ?? { name, count: 0 }

  return ({ id, ttl, thumbprint, user }) => {
    const time = now()
    for (const [oldest, entry] of used) {
      if (entry.until > time) break
      forget(oldest, entry)
    }
    const known = used.get(id)
    if (known && known.until > time) return false
    if (known) forget(id, known)
    const free = most - used.size
    if (free <= 0) throw full(most)
    const ofKey = tallyOf(`key ${thumbprint}`)
    if (ofKey.count >= free / PARTS.key) throw tooMany('this key', ofKey.count)
    const ofUser = tallyOf(`user ${createHash('sha256').update(user).digest('base64url')}`)
    if (ofUser.count >= free / PARTS.user) throw tooMany('this user', ofUser.count)
    for (const tally of [ofKey, ofUser]) {
      tally.count++
      tallies.set(tally.name, tally)
    }
    used.set(id, { until: time + ttl, tallies: [ofKey, ofUser] })
    return true
  }
}

/** In a store that nodes share. What this process has put there is in `own` as well: so it is bounded, and nobody asks twice. */
export const usedIn =
  (store: GrantStore, own: UseOnce): UseOnce =>
  async proof =>
    (await own(proof)) && store.add(`${GRANT_KINDS.granted}dpop:${proof.id}`, '1', proof.ttl)
