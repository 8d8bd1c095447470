// How a browser shows that it is the one that came back from the provider: by a cookie whose digest is kept.
import { timingSafeEqual } from 'node:crypto'
import { digest } from '../records.ts'

/** The name of the cookie, and the digest of what is in it. */
export interface Proof {
  readonly cookie: string
  readonly digest: string
}

interface WithCookies {
  readonly cookies: { get(name: string, options: { signed: boolean }): string | undefined }
}

/** Whether two digests are the same. */
export const isSame = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

/** Whether a request comes from the browser that has the cookie; without a proof none does. */
export function isProven({ cookies }: WithCookies, proof: Proof | undefined): boolean {
  const given = proof && cookies.get(proof.cookie, { signed: false })
  return proof !== undefined && given !== undefined && isSame(proof.digest, digest(given))
}
