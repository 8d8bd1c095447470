// Private keys for signing: PKCS#8 as PEM, a JWK, or a WebCrypto key, all made into a key that WebCrypto signs with.
import { AuthError } from './errors.ts'
import type { PrivateKeyOptions } from './options.ts'
import type { CryptoKey, JsonWebKey } from './web-crypto.ts'

export interface SigningKey {
  readonly key: CryptoKey
  /** JWS algorithm (RFC 7518, RFC 8037). */
  readonly alg: string
  readonly kid: string | undefined
}

type ImportAlgorithm = { name: string; namedCurve: string } | { name: string; hash: string } | { name: 'Ed25519' }

const CURVES: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' }

function algorithmOf(alg: string): ImportAlgorithm | undefined {
  const curve = CURVES[alg]
  if (curve !== undefined) return { name: 'ECDSA', namedCurve: curve }
  if (alg === 'EdDSA' || alg === 'Ed25519') return { name: 'Ed25519' }
  const rsa = /^(RS|PS)(256|384|512)$/.exec(alg)
  if (!rsa) return undefined
  return { name: rsa[1] === 'RS' ? 'RSASSA-PKCS1-v1_5' : 'RSA-PSS', hash: `SHA-${rsa[2]}` }
}

/** Object identifiers of key kinds as they stand in the DER of PKCS#8 (RFC 5208, RFC 5480, RFC 8410), in hex. */
const KINDS: ReadonlyArray<readonly [oid: string, alg: string]> = [
  ['06082a8648ce3d030107', 'ES256'],
  ['06052b81040022', 'ES384'],
  ['06052b81040023', 'ES512'],
  ['06092a864886f70d010101', 'RS256'],
  ['06032b6570', 'EdDSA'],
]

const fail = (what: string, fix: string, cause?: unknown) =>
  new AuthError(what, { code: 'invalid_options', fix, cause })

const HOW_TO_CONVERT = 'convert it with: openssl pkcs8 -topk8 -nocrypt -in key.pem'

function readPem(pem: string): Uint8Array<ArrayBuffer> {
  const found = /-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----/.exec(pem)
  if (!found) throw fail('privateKey is no PEM', 'give a PKCS#8 PEM (BEGIN PRIVATE KEY), a JWK or a CryptoKey')
  const [, label = '', base64 = ''] = found
  if (label !== 'PRIVATE KEY') throw fail(`privateKey is a PEM of a ${label}, not of a PRIVATE KEY`, HOW_TO_CONVERT)
  return Uint8Array.from(atob(base64.replace(/\s/g, '')), character => character.charCodeAt(0))
}

/** The algorithm of a PKCS#8 key, from its AlgorithmIdentifier, which stands in its first bytes. */
function algOfDer(der: Uint8Array): string | undefined {
  const head = Array.from(der.subarray(0, 48), byte => byte.toString(16).padStart(2, '0')).join('')
  return KINDS.find(([oid]) => head.includes(oid))?.[1]
}

function algOfJwk({ kty, crv, alg }: JsonWebKey): string | undefined {
  if (alg !== undefined) return alg
  if (kty === 'EC') return Object.keys(CURVES).find(name => CURVES[name] === crv)
  if (kty === 'OKP') return crv === 'Ed25519' ? 'EdDSA' : undefined
  return kty === 'RSA' ? 'RS256' : undefined
}

function algOfKey({ algorithm }: CryptoKey): string | undefined {
  const { name, namedCurve, hash } = algorithm as { name: string; namedCurve?: string; hash?: { name: string } }
  if (name === 'ECDSA') return Object.keys(CURVES).find(alg => CURVES[alg] === namedCurve)
  if (name === 'Ed25519') return 'EdDSA'
  const family = { 'RSASSA-PKCS1-v1_5': 'RS', 'RSA-PSS': 'PS' }[name]
  return family && hash ? `${family}${hash.name.slice(-3)}` : undefined
}

function known(alg: string | undefined): { alg: string; algorithm: ImportAlgorithm } {
  const algorithm = alg === undefined ? undefined : algorithmOf(alg)
  if (alg !== undefined && algorithm) return { alg, algorithm }
  throw fail(
    alg === undefined
      ? 'privateKey is of no known kind'
      : `privateKey has the algorithm ${alg}, which cannot sign here`,
    'use ES256, ES384, ES512, RS256 to RS512, PS256 to PS512 or EdDSA',
  )
}

const isCryptoKey = (key: JsonWebKey | CryptoKey): key is CryptoKey => 'algorithm' in key && 'usages' in key

async function importWith(work: (() => Promise<CryptoKey>) | CryptoKey, alg: string): Promise<CryptoKey> {
  try {
    return typeof work === 'function' ? await work() : work
  } catch {
    // The cause is left out: it may quote the key.
    throw fail(`privateKey could not be read as a ${alg} key`, `check that it is whole, private, and fits alg`)
  }
}

/** Makes a key fit to sign with. Throws an AuthError `invalid_options` that says what is wrong with it. */
export async function importPrivateKey({ privateKey, alg, kid }: PrivateKeyOptions): Promise<SigningKey> {
  if (typeof privateKey === 'string') {
    const der = readPem(privateKey)
    const use = known(alg ?? algOfDer(der))
    const load = () => crypto.subtle.importKey('pkcs8', der, use.algorithm, false, ['sign'])
    return { key: await importWith(load, use.alg), alg: use.alg, kid }
  }
  if (isCryptoKey(privateKey)) {
    const own = algOfKey(privateKey)
    if (alg !== undefined && alg !== own && !(own === 'EdDSA' && alg === 'Ed25519')) {
      throw fail(`privateKey signs ${own ?? 'nothing known'}, not ${alg}`, 'leave alg out, or give the key that fits')
    }
    if (privateKey.type !== 'private' || !privateKey.usages.includes('sign')) {
      throw fail('privateKey is a CryptoKey that cannot sign', 'import the private key with the usage "sign"')
    }
    return { key: privateKey, alg: known(alg ?? own).alg, kid }
  }
  if (privateKey.d === undefined) throw fail('privateKey is a public JWK', 'give the private one, with its member "d"')
  const use = known(alg ?? algOfJwk(privateKey))
  // What the JWK says about its own use would only get in the way of the algorithm that was asked for.
  const { alg: _alg, use: _use, key_ops: _ops, ext: _ext, ...jwk } = privateKey
  const load = () => crypto.subtle.importKey('jwk', jwk, use.algorithm, false, ['sign'])
  return { key: await importWith(load, use.alg), alg: use.alg, kid: kid ?? privateKey.kid }
}
