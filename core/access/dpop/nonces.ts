// Nonces that this host wants to see in proofs (RFC 9449 section 8): nothing of them is kept. Each is the number of a minute and
// a MAC of it, so that every node with the same secrets gives out and knows the same ones.
import { createHmac, timingSafeEqual } from 'node:crypto'

/** Milliseconds. */
const STEP = 60_000
/** Steps that a nonce is good for beside the one it was given out in; and of clocks that are ahead. */
const LATE = 2
const AHEAD = 1
const MAC_BYTES = 16
/** Of 20 bytes in base64url. */
const LENGTH = 27

export interface Nonces {
  /** What the next proofs should have; the same for a minute, for everybody. */
  current(): string
  /** `current` is what `current()` gives; `known` is good for two to three minutes more; `unknown` for everything else. */
  judge(nonce: unknown): 'current' | 'known' | 'unknown'
}

function make(key: Buffer, step: number): string {
  const number = Buffer.alloc(4)
  number.writeUInt32BE(step)
  const mac = createHmac('sha256', key).update(number).digest().subarray(0, MAC_BYTES)
  return Buffer.concat([number, mac]).toString('base64url')
}

const isSame = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** `keys`: the first makes nonces, all are known. `now`: milliseconds, for tests. */
export function createNonces(keys: readonly Buffer[], now: () => number = Date.now): Nonces {
  const [first = Buffer.alloc(0)] = keys
  let made: { readonly step: number; readonly nonce: string } | undefined
  const stepNow = () => Math.floor(now() / STEP)

  function current() {
    const step = stepNow()
    if (made?.step !== step) made = { step, nonce: make(first, step) }
    return made.nonce
  }

  return {
    current,
    judge(nonce) {
      if (typeof nonce !== 'string' || nonce.length !== LENGTH || !/^[\w-]+$/.test(nonce)) return 'unknown'
      if (isSame(nonce, current())) return 'current'
      const step = Buffer.from(nonce, 'base64url').readUInt32BE()
      if (step < stepNow() - LATE || step > stepNow() + AHEAD) return 'unknown'
      return keys.some(key => isSame(nonce, make(key, step))) ? 'known' : 'unknown'
    },
  }
}
