// Client authentication at the token endpoint (RFC 6749 §2.3, RFC 7523 §2.2), and its private keys.

import { modifyAssertion, PrivateKeyJwt } from 'oauth4webapi'
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import type { ClientAuth, PrivateKeyOptions } from './options.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import type { Secrets } from './secrets.ts'
import type { CryptoKey, JsonWebKey } from './token-cache.ts'

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

/** Key types by the DER object identifier in PKCS#8 (RFC 5208, RFC 5480, RFC 8410), in hex. */
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
    // No cause, because it may contain the key.
    throw fail(`privateKey could not be read as a ${alg} key`, `check that it is whole, private, and fits alg`)
  }
}

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
  const { alg: _alg, use: _use, key_ops: _ops, ext: _ext, ...jwk } = privateKey
  const load = () => crypto.subtle.importKey('jwk', jwk, use.algorithm, false, ['sign'])
  return { key: await importWith(load, use.alg), alg: use.alg, kid: kid ?? privateKey.kid }
}

export interface ChosenClientAuth {
  readonly method: string
  readonly authenticate: ClientAuth
}

export interface MethodFacts {
  readonly registered: string | undefined
  readonly explicit: string | undefined
  readonly hasKey: boolean
  readonly hasSecret: boolean
  readonly listed: readonly string[] | undefined
}

const canDo = (method: string, { hasKey, hasSecret }: MethodFacts): boolean =>
  method === 'none' ||
  (method === 'private_key_jwt' ? hasKey : /^client_secret_(?:basic|post)$/.test(method) && hasSecret)

/**
 * Selects the method in this order: registered, option, key, no secret, basic if listed or by default (RFC 8414 §2),
 * post, none. Returns undefined if no method fits.
 */
export function chooseMethod(facts: MethodFacts): string | undefined {
  const { registered, explicit, hasKey, hasSecret, listed } = facts
  // Servers return the default `client_secret_basic` even to clients without a secret.
  if (registered !== undefined && (canDo(registered, facts) || hasSecret || registered === 'private_key_jwt')) {
    return registered
  }
  if (explicit !== undefined) return explicit
  if (hasKey) return 'private_key_jwt'
  if (!hasSecret) return 'none'
  if (listed === undefined) return 'client_secret_basic'
  return ['client_secret_basic', 'client_secret_post', 'none'].find(method => listed.includes(method))
}

/** Form-encodes one half of Basic credentials (RFC 6749 §2.3.1). */
const formEncode = (value: string): string => new URLSearchParams([['', value]]).toString().slice(1)

/** Replaces oauth4webapi's version, which also encodes `-`, `.`, `_` and `*`: some servers compare without decoding. */
function secretBasic(secret: string, secrets: Secrets): ClientAuth {
  return ({ client, headers }) => {
    const credentials = btoa(`${formEncode(client.clientId)}:${formEncode(secret)}`)
    secrets.add(credentials)
    headers.set('authorization', `Basic ${credentials}`)
  }
}

const secretPost = (secret: string): ClientAuth => {
  return ({ client, body }) => {
    body.set('client_id', client.clientId)
    body.set('client_secret', secret)
  }
}

const none: ClientAuth = ({ client, body }) => body.set('client_id', client.clientId)

function privateKeyJwt(options: PrivateKeyOptions, secrets: Secrets): ClientAuth {
  return async ({ server, client, body, headers }) => {
    const { key, alg, kid } = await importPrivateKey(options)
    const sign = PrivateKeyJwt(kid === undefined ? key : { key, kid }, {
      [modifyAssertion]: header => {
        // oauth4webapi uses the curve name (RFC 9864). Most servers know the older name.
        if (alg === 'EdDSA') header['alg'] = alg
      },
    })
    await sign({ issuer: server.issuer }, { client_id: client.clientId }, body, headers)
    secrets.add(body.get('client_assertion') ?? undefined)
  }
}

export function authenticateBy(
  method: string,
  credentials: { readonly secret: string | undefined; readonly key: PrivateKeyOptions | undefined },
  secrets: Secrets,
): ClientAuth | undefined {
  const { secret, key } = credentials
  if (method === 'none') return none
  if (method === 'private_key_jwt') return key && privateKeyJwt(key, secrets)
  if (secret === undefined) return undefined
  if (method === 'client_secret_basic') return secretBasic(secret, secrets)
  return method === 'client_secret_post' ? secretPost(secret) : undefined
}

const custom = (authenticate: ClientAuth): ClientAuth => {
  return async request => {
    try {
      await authenticate(request)
    } catch (cause) {
      if (AuthError.is(cause)) throw cause
      throw new AuthError('clientAuthentication threw, so the token request was not sent', {
        code: 'client_authentication_failed',
        fix: 'see the cause',
        cause,
      })
    }
  }
}

function impossible(server: ServerInfo, method: string | undefined): AuthError {
  const listed = server.tokenEndpointAuthMethodsSupported?.join(', ')
  return new AuthError(
    method === undefined
      ? `the client has a secret, but ${server.issuer} takes only ${listed}`
      : `the client is to authenticate at ${server.issuer} by ${method} and has not what that needs`,
    {
      code: 'invalid_options',
      fix:
        method === 'private_key_jwt' || listed?.includes('private_key_jwt')
          ? 'set privateKey (PEM, JWK or CryptoKey) for private_key_jwt'
          : 'set clientSecret or tokenEndpointAuthMethod, or do it yourself in clientAuthentication',
    },
  )
}

export function chooseClientAuth(ctx: ClientContext, server: ServerInfo, client: ClientIdentity): ChosenClientAuth {
  const { clientAuthentication, privateKey, alg, kid, tokenEndpointAuthMethod } = ctx.options
  if (clientAuthentication) return { method: 'custom', authenticate: custom(clientAuthentication) }
  ctx.secrets.add(client.clientSecret)
  const method = chooseMethod({
    registered: client.authMethod,
    explicit: tokenEndpointAuthMethod,
    hasKey: privateKey !== undefined,
    hasSecret: client.clientSecret !== undefined,
    listed: server.tokenEndpointAuthMethodsSupported,
  })
  const key = privateKey === undefined ? undefined : { privateKey, ...(alg && { alg }), ...(kid && { kid }) }
  const credentials = { secret: client.clientSecret, key }
  const authenticate = method === undefined ? undefined : authenticateBy(method, credentials, ctx.secrets)
  if (method === undefined || !authenticate) throw impossible(server, method)
  return { method, authenticate }
}
