// How the client proves who it is at the token endpoint (RFC 6749 §2.3, RFC 7523 §2.2), and which way is chosen.

import { modifyAssertion, PrivateKeyJwt } from 'oauth4webapi'
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import { importPrivateKey } from './keys.ts'
import type { ClientAuth, PrivateKeyOptions } from './options.ts'
import type { ClientIdentity, ServerInfo } from './parties.ts'
import type { Secrets } from './secrets.ts'

export interface ChosenClientAuth {
  /** As in `token_endpoint_auth_methods_supported`; `custom` for the caller's own. */
  readonly method: string
  readonly authenticate: ClientAuth
}

export interface MethodFacts {
  /** As the registration's answer says. */
  readonly registered: string | undefined
  /** As the caller says. */
  readonly explicit: string | undefined
  readonly hasKey: boolean
  readonly hasSecret: boolean
  /** `token_endpoint_auth_methods_supported`. */
  readonly listed: readonly string[] | undefined
}

/** True where the client has what a method needs. */
const canDo = (method: string, { hasKey, hasSecret }: MethodFacts): boolean =>
  method === 'none' ||
  (method === 'private_key_jwt' ? hasKey : /^client_secret_(?:basic|post)$/.test(method) && hasSecret)

/**
 * The method to use; undefined: none fits. As registered, else as the caller says, else by key, else without a secret
 * where there is none, else basic where it is listed or nothing is (RFC 8414 §2), else post, else none.
 */
export function chooseMethod(facts: MethodFacts): string | undefined {
  const { registered, explicit, hasKey, hasSecret, listed } = facts
  // Servers answer `client_secret_basic`, the default, also to clients that they gave no secret.
  if (registered !== undefined && (canDo(registered, facts) || hasSecret || registered === 'private_key_jwt')) {
    return registered
  }
  if (explicit !== undefined) return explicit
  if (hasKey) return 'private_key_jwt'
  if (!hasSecret) return 'none'
  if (listed === undefined) return 'client_secret_basic'
  return ['client_secret_basic', 'client_secret_post', 'none'].find(method => listed.includes(method))
}

/**
 * One half of Basic credentials as RFC 6749 §2.3.1 wants it: `application/x-www-form-urlencoded`, which leaves letters,
 * digits and `-._*` alone.
 */
const formEncode = (value: string): string => new URLSearchParams([['', value]]).toString().slice(1)

/**
 * Not oauth4webapi's: it also encodes `-`, `.`, `_` and `*`, and servers that compare without decoding then see another
 * client.
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

/** A public client says who it is, and proves nothing. */
const none: ClientAuth = ({ client, body }) => body.set('client_id', client.clientId)

/** A fresh assertion for each request: issuer and subject the client, audience the issuer, 60 s of life. */
function privateKeyJwt(options: PrivateKeyOptions, secrets: Secrets): ClientAuth {
  return async ({ server, client, body, headers }) => {
    const { key, alg, kid } = await importPrivateKey(options)
    const sign = PrivateKeyJwt(kid === undefined ? key : { key, kid }, {
      [modifyAssertion]: header => {
        // oauth4webapi names the curve (RFC 9864); most servers know the older name.
        if (alg === 'EdDSA') header['alg'] = alg
      },
    })
    await sign({ issuer: server.issuer }, { client_id: client.clientId }, body, headers)
    secrets.add(body.get('client_assertion') ?? undefined)
  }
}

/** How to authenticate by a method that the client has everything for. */
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

/** The caller's own way. Its failure is told as ours, with its own as the cause. */
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

/** Chooses how this client authenticates at this server. Throws an AuthError `invalid_options` where it cannot. */
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
