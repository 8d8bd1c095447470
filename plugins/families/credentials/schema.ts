// The options for credentials of an API, as JSON Schema and types.

import type { JsonSchema, Typed } from '../../../core/index.ts'

const UNSAFE = /\p{Cc}|[^\u0020-\u00ff]/u

function checkSecret(value: unknown, optionName: string): string {
  // Secret files end with a line break.
  const secret = typeof value === 'string' ? value.replace(/[\r\n]+$/, '') : ''
  if (secret === '') throw new Error(`${optionName} is empty or not a string`)
  if (UNSAFE.test(secret)) throw new Error(`${optionName} has characters that are invalid in headers`)
  return secret
}

/** Rejects if the secret cannot be sent. The message contains only the option name. */
export function readSecret(source: SecretSource, optionName: string): string | Promise<string> {
  if (typeof source !== 'string') {
    const throwFailure = () => {
      throw new Error(`the function ${optionName} failed`)
    }
    return Promise.resolve()
      .then(source)
      .then(value => checkSecret(value, optionName), throwFailure)
  }
  try {
    return checkSecret(source, optionName)
  } catch (error) {
    // An exception would leave the promises of other credentials without a handler.
    return Promise.reject(error)
  }
}

/** A multi-line secret such as a PEM key. */
export async function readKey(source: SecretSource | undefined, optionName: string): Promise<string | undefined> {
  if (source === undefined) return undefined
  try {
    const value: unknown = typeof source === 'string' ? source : await source()
    if (typeof value === 'string' && value.trim() !== '') return value.trim()
  } catch {
    throw new Error(`the function ${optionName} failed`)
  }
  throw new Error(`${optionName} is empty or not a string`)
}

/** A secret, or a function that returns it: called for each request. */
export type SecretSource = string | (() => string | Promise<string>)

/** How the host gets access tokens of an API. */
export type UpstreamAuth =
  | {
      readonly kind: 'client-credentials'
      readonly clientId: string
      readonly clientSecret?: SecretSource
      readonly privateKey?: SecretSource
      /** Required with `clientSecret`, unless the token endpoint is known. */
      readonly issuer?: string
      readonly scopes?: readonly string[]
      readonly resource?: string
      readonly dpop?: boolean
    }
  | { readonly kind: 'bridge'; readonly scope?: string | readonly string[] }
  | {
      readonly kind: 'exchange'
      readonly tokenEndpoint: string
      readonly clientId: string
      readonly clientSecret?: SecretSource
      readonly audience?: string
      readonly resource?: string
      readonly scopes?: readonly string[]
    }
  | {
      readonly kind: 'login'
      readonly clientId?: string
      readonly clientSecret?: SecretSource
      readonly issuer?: string
      readonly scopes?: readonly string[]
      readonly resource?: string
    }

/** Options whose tokens belong to the caller. */
export const isPerCaller = (auth: Pick<UpstreamAuth, 'kind'> | undefined): boolean =>
  auth !== undefined && auth.kind !== 'client-credentials'

export const SECRET = {
  anyOf: [{ type: 'string', minLength: 1 }, { callable: true }],
  writeOnly: true,
  description: 'A secret; in code also a function that returns it for each request.',
} as JsonSchema & { readonly writeOnly: true } & Typed<SecretSource>

const text = (description: string) => ({ type: 'string', minLength: 1, description })
const url = (description: string) => ({ type: 'string', pattern: '^https?://[^/?#@\\s]+(/[^?#\\s]*)?$', description })
const scopes = {
  type: 'array',
  items: { type: 'string', pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' },
  minItems: 1,
  description: 'Scopes to request.',
}
const resource = text('The resource indicator of the API (RFC 8707).')

const kind = (title: string, name: UpstreamAuth['kind'], required: readonly string[], properties: object) => ({
  title,
  type: 'object',
  additionalProperties: false,
  required: ['kind', ...required],
  properties: { kind: { const: name }, ...properties },
})

const CLIENT_CREDENTIALS = kind('ClientCredentialsAuth', 'client-credentials', ['clientId'], {
  clientId: text('The client id of this host.'),
  clientSecret: SECRET,
  privateKey: { ...SECRET, description: 'PKCS#8 PEM or private JWK for private_key_jwt.' },
  issuer: url('The authorization server. Default with `privateKey`: the metadata of the API names it.'),
  scopes,
  resource,
  dpop: { type: 'boolean', description: 'Requests tokens that are bound to a key (RFC 9449).' },
})

const createAuthSchema = (clientCredentials: object) => ({
  description: 'How the host gets access tokens. The token of the caller is never forwarded.',
  anyOf: [
    clientCredentials,
    kind('BridgeAuth', 'bridge', [], {
      scope: {
        anyOf: [text('Scopes, separated by spaces.'), scopes],
        description: "Scopes of the caller's token at the identity provider. Default: those of the login.",
      },
    }),
    kind('ExchangeAuth', 'exchange', ['tokenEndpoint', 'clientId'], {
      tokenEndpoint: url("Exchanges the caller's token of the identity provider (RFC 8693)."),
      clientId: text('The client id of this host.'),
      clientSecret: SECRET,
      audience: text('The audience of the new token.'),
      resource,
      scopes,
    }),
    {
      ...kind('LoginAuth', 'login', [], {
        clientId: text('The client id of this host. Default: dynamic client registration.'),
        clientSecret: SECRET,
        issuer: url('The authorization server. Default: the metadata of the API names it.'),
        scopes,
        resource,
      }),
      dependentRequired: { clientSecret: ['clientId', 'issuer'] },
    },
  ],
})

/** Requires `issuer`: otherwise the API could name another authorization server, which would receive the secret. */
export const UPSTREAM_AUTH = createAuthSchema({
  ...CLIENT_CREDENTIALS,
  dependentRequired: { clientSecret: ['issuer'] },
}) as unknown as JsonSchema & Typed<UpstreamAuth>

/** The schema for security schemes, which can have a token endpoint. */
export const SCHEME_AUTH = createAuthSchema({
  ...CLIENT_CREDENTIALS,
  title: 'SchemeClientCredentials',
}) as unknown as JsonSchema & Typed<UpstreamAuth>
