// The types of WebCrypto that the client's interfaces name: declared by the browser's library alone, and needed in Node.

/** A key that WebCrypto made; the same type as the platform's own. */
export type CryptoKey = Parameters<typeof crypto.subtle.sign>[1]

/** A key as JSON (RFC 7517). */
export interface JsonWebKey {
  kty?: string
  crv?: string
  x?: string
  y?: string
  d?: string
  n?: string
  e?: string
  p?: string
  q?: string
  dp?: string
  dq?: string
  qi?: string
  alg?: string
  kid?: string
  use?: string
  key_ops?: string[]
  ext?: boolean
}
