// Client authentication at the token endpoint (RFC 6749 §2.3, RFC 7523 §2.2), and its private keys.

import { importJWK, importPKCS8, type JWK } from 'jose'
import { modifyAssertion, PrivateKeyJwt } from 'oauth4webapi'
import type { ClientContext } from './context.ts'
import { AuthError, callOption } from './errors.ts'
import type { ClientAuth, PrivateKeyOptions } from './options.ts'
import type { ClientIdentity, CryptoKey, JsonWebKey, ServerInfo } from './stores.ts'
import { formEncode, type Secrets } from './text.ts'

/** Default algorithms, one for each key type. */
const DEFAULT_ALGS = ['ES256', 'ES384', 'ES512', 'RS256', 'EdDSA']
const CURVE_ALGS: Readonly<Record<string, string>> = { 'P-256': 'ES256', 'P-384': 'ES384', 'P-521': 'ES512' }
const SIGNING_ALG = /^(?:ES(?:256|384|512)|[RP]S(?:256|384|512)|EdDSA|Ed25519)$/

const fail = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function algOfJwk({ kty, crv = '' }: JsonWebKey): string | undefined {
  if (kty === 'RSA') return 'RS256'
  return kty === 'OKP' && crv === 'Ed25519' ? 'EdDSA' : CURVE_ALGS[crv]
}

function algOfKey({ algorithm }: CryptoKey): string | undefined {
  const { name, namedCurve = '', hash } = algorithm as { name: string; namedCurve?: string; hash?: { name: string } }
  if (name === 'ECDSA') return CURVE_ALGS[namedCurve]
  if (name === 'Ed25519') return 'EdDSA'
  const family = { 'RSASSA-PKCS1-v1_5': 'RS', 'RSA-PSS': 'PS' }[name]
  return family && hash ? `${family}${hash.name.slice(-3)}` : undefined
}

function checkAlg(alg: string | undefined): string {
  if (alg !== undefined && SIGNING_ALG.test(alg)) return alg
  const what = alg === undefined ? 'has an unsupported type' : `has the algorithm ${alg}, which cannot sign here`
  throw fail(`privateKey ${what}`, 'use ES256, ES384, ES512, RS256 to RS512, PS256 to PS512 or EdDSA')
}

/**
 * Imports the key with the first suitable algorithm of `algs`. Errors have no cause, because it can contain the key.
 */
async function importFirst(algs: readonly string[], load: (alg: string) => Promise<unknown>) {
  for (const alg of algs) {
    const key = await load(alg).catch(() => undefined)
    if (key !== undefined) return { key: key as CryptoKey, alg }
  }
  const kind = algs.length === 1 ? ` as a ${algs[0]} key` : ': it is damaged, or its type is unsupported'
  throw fail(`privateKey could not be read${kind}`, 'check that it is complete, private, and matches alg')
}

function checkPem(pem: string): void {
  const [, label] = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(pem) ?? []
  if (label === undefined)
    throw fail('privateKey is not a PEM', 'use a PKCS#8 PEM (BEGIN PRIVATE KEY), a JWK or a CryptoKey')
  if (label === 'PRIVATE KEY') return
  const convert = 'convert it with: openssl pkcs8 -topk8 -nocrypt -in key.pem'
  throw fail(`privateKey is a PEM of a ${label}, not of a PRIVATE KEY`, convert)
}

/** Returns the key with its JWS algorithm (RFC 7518, RFC 8037). */
export async function importPrivateKey({ privateKey, alg, kid }: PrivateKeyOptions) {
  if (typeof privateKey === 'string') {
    checkPem(privateKey)
    const algs = alg === undefined ? DEFAULT_ALGS : [checkAlg(alg)]
    return { ...(await importFirst(algs, candidate => importPKCS8(privateKey.trim(), candidate))), kid }
  }
  if ('algorithm' in privateKey) {
    const found = algOfKey(privateKey)
    if (alg !== undefined && alg !== found && !(found === 'EdDSA' && alg === 'Ed25519')) {
      throw fail(`privateKey signs ${found ?? 'an unknown algorithm'}, not ${alg}`, 'remove alg, or use a matching key')
    }
    if (privateKey.type !== 'private' || !privateKey.usages.includes('sign')) {
      throw fail('privateKey is a CryptoKey that cannot sign', 'import the private key with the usage "sign"')
    }
    return { key: privateKey, alg: checkAlg(alg ?? found), kid }
  }
  if (privateKey.d === undefined)
    throw fail('privateKey is a public JWK', 'use the private key, which has the member "d"')
  const use = checkAlg(alg ?? privateKey.alg ?? algOfJwk(privateKey))
  const { alg: _alg, use: _use, key_ops: _ops, ext: _ext, ...jwk } = privateKey
  return { ...(await importFirst([use], candidate => importJWK(jwk as JWK, candidate))), kid: kid ?? privateKey.kid }
}

export interface MethodCriteria {
  readonly registered: string | undefined
  readonly explicit: string | undefined
  readonly hasKey: boolean
  readonly hasSecret: boolean
  readonly listed: readonly string[] | undefined
}

const isPossible = (method: string, { hasKey, hasSecret }: MethodCriteria): boolean =>
  method === 'none' ||
  (method === 'private_key_jwt' ? hasKey : /^client_secret_(?:basic|post)$/.test(method) && hasSecret)

/**
 * Selects the method in this order: registered, option, key, no secret, basic if listed or by default (RFC 8414 §2),
 * post, none. Returns undefined if no method fits.
 */
export function chooseMethod(criteria: MethodCriteria): string | undefined {
  const { registered, explicit, hasKey, hasSecret, listed } = criteria
  // Registration responses contain the default `client_secret_basic` even for clients without a secret.
  if (registered !== undefined && (isPossible(registered, criteria) || hasSecret || registered === 'private_key_jwt')) {
    return registered
  }
  if (explicit !== undefined) return explicit
  if (hasKey) return 'private_key_jwt'
  if (!hasSecret) return 'none'
  if (listed === undefined) return 'client_secret_basic'
  return ['client_secret_basic', 'client_secret_post', 'none'].find(method => listed.includes(method))
}

/**
 * Replaces oauth4webapi's function, which also encodes `-`, `.`, `_` and `*`: some servers compare without decoding.
 */
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

export function createClientAuth(
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

const wrapClientAuth =
  (authenticate: ClientAuth): ClientAuth =>
  request => {
    const about = { code: 'client_authentication_failed', fix: 'see the cause' }
    return callOption('clientAuthentication threw, so the token request was not sent', about, () =>
      authenticate(request),
    )
  }

function noMethodError(server: ServerInfo, method: string | undefined): AuthError {
  const listed = server.tokenEndpointAuthMethodsSupported?.join(', ')
  return new AuthError(
    method === undefined
      ? `the client has a secret, but ${server.issuer} accepts only ${listed}`
      : `the client cannot authenticate at ${server.issuer} by ${method}`,
    {
      code: 'invalid_options',
      fix:
        method === 'private_key_jwt' || listed?.includes('private_key_jwt')
          ? 'set privateKey (PEM, JWK or CryptoKey) for private_key_jwt'
          : 'set clientSecret or tokenEndpointAuthMethod, or do it yourself in clientAuthentication',
    },
  )
}

export function chooseClientAuth(ctx: ClientContext, server: ServerInfo, client: ClientIdentity) {
  const { clientAuthentication, privateKey, alg, kid, tokenEndpointAuthMethod } = ctx.options
  if (clientAuthentication) return { method: 'custom', authenticate: wrapClientAuth(clientAuthentication) }
  ctx.secrets.add(client.clientSecret)
  const method = chooseMethod({
    registered: client.tokenEndpointAuthMethod,
    explicit: tokenEndpointAuthMethod,
    hasKey: privateKey !== undefined,
    hasSecret: client.clientSecret !== undefined,
    listed: server.tokenEndpointAuthMethodsSupported,
  })
  const key = privateKey === undefined ? undefined : { privateKey, ...(alg && { alg }), ...(kid && { kid }) }
  const credentials = { secret: client.clientSecret, key }
  const authenticate = method === undefined ? undefined : createClientAuth(method, credentials, ctx.secrets)
  if (method === undefined || !authenticate) throw noMethodError(server, method)
  return { method, authenticate }
}
