// Protection against replayed DPoP proofs: the used proofs (RFC 9449 section 11.1) and the nonces (section 8).
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { HostError } from '../../../core/index.ts'
import { GRANT_PREFIXES, type GrantStore } from '../grant-store/index.ts'

/** Maximum used proofs, about 200 bytes each: with a `maxAge` of 60 s, some 5,000 requests per second. */
const MAX_PROOFS = 400_000
/** One key can use 1/8 of the free entries and one user 1/4, so that space is left for others. */
const MAX_SHARES = { key: 8, user: 4 } as const
const RETRY_AFTER = { 'Retry-After': '5' }

export interface UsedProof {
  /** Unique for the proof and its key. */
  readonly id: string
  readonly ttl: number
  readonly thumbprint: string
  readonly user: string
}

export type UseOnce = (proof: UsedProof) => boolean | Promise<boolean>

interface Tally {
  readonly name: string
  count: number
}

const createLimitError = (subject: string, count: number) =>
  new HostError('tooManyRequests', {
    detail: `too many proofs (DPoP) of ${subject} were used recently; wait, and send fewer requests per second`,
    reason: `this process remembers ${count} proofs of ${subject}, which is the limit`,
    headers: RETRY_AFTER,
  })

/** Stores proofs in this process. Valid proofs are never evicted: at the limit, new proofs are refused. */
export function createUsedProofs(maxProofs = MAX_PROOFS, now: () => number = Date.now): UseOnce {
  const used = new Map<string, { readonly until: number; readonly tallies: readonly Tally[] }>()
  const tallies = new Map<string, Tally>()

  function remove(id: string) {
    for (const tally of used.get(id)?.tallies ?? []) if (--tally.count === 0) tallies.delete(tally.name)
    used.delete(id)
  }

  const findTally = (name: string): Tally => tallies.get(name) ?? { name, count: 0 }

  return ({ id, ttl, thumbprint, user }) => {
    const time = now()
    for (const [oldest, { until }] of used) {
      if (until > time) break
      remove(oldest)
    }
    if ((used.get(id)?.until ?? 0) > time) return false
    remove(id)
    const free = maxProofs - used.size
    if (free <= 0) {
      throw new HostError('unavailable', {
        detail: 'too many proofs (DPoP) were used within the last minutes',
        reason: `the ${maxProofs} proofs that this process remembers are all recent`,
        headers: RETRY_AFTER,
      })
    }
    const keyTally = findTally(`key ${thumbprint}`)
    if (keyTally.count >= free / MAX_SHARES.key) throw createLimitError('this key', keyTally.count)
    const userTally = findTally(`user ${createHash('sha256').update(user).digest('base64url')}`)
    if (userTally.count >= free / MAX_SHARES.user) throw createLimitError('this user', userTally.count)
    for (const tally of [keyTally, userTally]) {
      tally.count++
      tallies.set(tally.name, tally)
    }
    used.set(id, { until: time + ttl, tallies: [keyTally, userTally] })
    return true
  }
}

/** Stores proofs in a store that nodes share. `local` also stores this process's proofs, for its limits. */
export const createSharedProofs =
  (store: GrantStore, local: UseOnce): UseOnce =>
  async proof =>
    (await local(proof)) && store.add(`${GRANT_PREFIXES.granted}dpop:${proof.id}`, '1', proof.ttl)

/** Milliseconds for which one nonce is current. */
const NONCE_PERIOD = 60_000
/** Number of earlier steps whose nonces are still valid, and of later steps for clocks that are ahead. */
const MAX_PAST_STEPS = 2
const MAX_FUTURE_STEPS = 1
const MAC_BYTES = 16

export type Nonces = ReturnType<typeof createNonces>

function createNonce(key: Buffer, step: number): string {
  const number = Buffer.alloc(4)
  number.writeUInt32BE(step)
  const mac = createHmac('sha256', key).update(number).digest().subarray(0, MAC_BYTES)
  return Buffer.concat([number, mac]).toString('base64url')
}

const isSame = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** Stateless nonces: a time step and its MAC, valid on all nodes with these keys. The first key signs. */
export function createNonces(keys: readonly Buffer[], now: () => number = Date.now) {
  const [first = Buffer.alloc(0)] = keys
  let cached = { step: -1, nonce: '' }
  const currentStep = () => Math.floor(now() / NONCE_PERIOD)

  /** Returns the nonce for the next proofs; the same for all clients for a minute. */
  function current(): string {
    const step = currentStep()
    if (cached.step !== step) cached = { step, nonce: createNonce(first, step) }
    return cached.nonce
  }

  return {
    current,
    /** Rates a nonce. `known` nonces are valid, but not current. */
    checkNonce(nonce: unknown): 'current' | 'known' | 'unknown' {
      if (typeof nonce !== 'string' || !/^[\w-]{27}$/.test(nonce)) return 'unknown'
      if (isSame(nonce, current())) return 'current'
      const step = Buffer.from(nonce, 'base64url').readUInt32BE()
      if (step < currentStep() - MAX_PAST_STEPS || step > currentStep() + MAX_FUTURE_STEPS) return 'unknown'
      return keys.some(key => isSame(nonce, createNonce(key, step))) ? 'known' : 'unknown'
    },
  }
}
