// DPoP proofs (RFC 9449), valid and invalid: every header and claim can be changed.
import { createHash, randomUUID } from 'node:crypto'
import { encode, inSeconds, signText, type TestKey } from './test-issuer.ts'

type Fields = Readonly<Record<string, unknown>>

const PARTS: Readonly<Record<string, readonly string[]>> = {
  EC: ['crv', 'kty', 'x', 'y'],
  OKP: ['crv', 'kty', 'x'],
  RSA: ['e', 'kty', 'n'],
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The public key, as a proof contains it. */
export const publicJwk = ({ publicKey }: Pick<TestKey, 'publicKey'>): Fields =>
  publicKey.export({ format: 'jwk' }) as Fields

/** RFC 7638. */
export function thumbprint(key: Pick<TestKey, 'publicKey'>): string {
  const jwk = publicJwk(key)
  const names = PARTS[String(jwk['kty'])] ?? []
  return sha256(JSON.stringify(Object.fromEntries(names.map(name => [name, jwk[name]]))))
}

/** The confirmation claim of a token bound to this key. */
export const boundTo = (key: Pick<TestKey, 'publicKey'>) => ({ cnf: { jkt: thumbprint(key) } })

export interface ProofFacts {
  readonly key: TestKey
  readonly token: string
  /** The URL of the request. A query is kept in the proof. */
  readonly url: string
  readonly method?: string
  /** Overrides; undefined removes a claim or header. */
  readonly header?: Fields
  readonly claims?: Fields
  /** The key that signs, if not this one. */
  readonly signer?: TestKey
}

/** Creates a fresh proof. */
export function createProof({ key, token, url, method = 'POST', header, claims, signer = key }: ProofFacts): string {
  const head = { typ: 'dpop+jwt', alg: key.alg, jwk: publicJwk(key), ...header }
  const body = { jti: randomUUID(), htm: method, htu: url, iat: inSeconds(0), ath: sha256(token), ...claims }
  const text = `${encode(head)}.${encode(body)}`
  return `${text}.${signText(text, signer.alg, signer.privateKey)}`
}

/** The headers of a request with a bound token. */
export const provenBy = (facts: ProofFacts): Record<string, string> => ({
  Authorization: `DPoP ${facts.token}`,
  DPoP: createProof(facts),
})
