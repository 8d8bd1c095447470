// Token signing keys, derived from `secrets` or from a PEM file. The first signs, all are published.
import { createECDH, createPrivateKey, hash, hkdfSync, type KeyObject } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { PublicJwk } from '../../../core/auth.ts'
import { errorText } from '../../../core/plugin.ts'

export const SIGNING = 'ES256'

const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
/** Includes 64 extra bits against modulo bias (FIPS 186-5, A.2.1). */
const SEED_BYTES = 48
const SCALAR_BYTES = 32

export interface SigningKey {
  readonly privateJwk: Readonly<Record<string, unknown>>
  readonly publicJwk: PublicJwk
}

function describe(key: KeyObject): SigningKey {
  const { kty, crv, x, y, d } = key.export({ format: 'jwk' })
  // The key id is the thumbprint of RFC 7638.
  const kid = hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url')
  const named = { kid, use: 'sig', alg: SIGNING }
  return { privateJwk: { kty, crv, x, y, d, ...named }, publicJwk: { kty, crv, x, y, ...named } }
}

function derive(secret: Buffer): SigningKey {
  const seed = Buffer.from(hkdfSync('sha256', secret, '', 'P-256 signing key', SEED_BYTES))
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (ORDER - 1n)) + 1n
  const d = Buffer.from(scalar.toString(16).padStart(SCALAR_BYTES * 2, '0'), 'hex')
  const curve = createECDH('prime256v1')
  curve.setPrivateKey(d)
  const point = curve.getPublicKey()
  const text = (bytes: Buffer) => bytes.toString('base64url')
  const [x, y] = [point.subarray(1, 1 + SCALAR_BYTES), point.subarray(1 + SCALAR_BYTES)]
  const jwk = { kty: 'EC', crv: 'P-256', x: text(x), y: text(y), d: text(d) }
  return describe(createPrivateKey({ key: jwk, format: 'jwk' }))
}

export const deriveSigningKeys = (secrets: readonly Buffer[]): SigningKey[] => secrets.map(derive)

const PEM = /-----BEGIN ([A-Z ]+)-----[\s\S]*?-----END \1-----/g

export function readSigningKeys(file: string): SigningKey[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new Error(`${file} cannot be read: ${errorText(cause)}`, { cause })
  }
  const blocks = [...text.matchAll(PEM)].filter(([, kind]) => kind !== 'EC PARAMETERS')
  if (blocks.length === 0) {
    const make = 'openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256'
    throw new Error(`${file} has no PEM private key; make one with: ${make}`)
  }
  return blocks.map(([block], index) => {
    const where = `key ${index + 1} of ${file}`
    let key: KeyObject
    try {
      key = createPrivateKey(block)
    } catch (cause) {
      // Errors of OpenSSL can contain the key.
      throw new Error(`${where} is not a valid private key`, { cause })
    }
    if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw new Error(`${where} is not of the curve P-256`)
    return describe(key)
  })
}
