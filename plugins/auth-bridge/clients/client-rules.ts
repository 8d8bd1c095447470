// Rules for MCP clients: redirect URIs must match the config, and unsupported features are off.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { type Client, errors } from 'oidc-provider'
import { isObject } from '../../../core/plugin.ts'
import type { FilledAuthBridge } from '../options.ts'
import { dropNulls } from '../server/oidc-provider.ts'
import { mayRedirect, type RedirectPattern } from './redirects.ts'

const KEPT = ['redirect_uris', 'client_name', 'client_uri', 'grant_types', 'token_endpoint_auth_method'] as const

const PREFIX = 'reg.'
const SIGNATURE_BYTES = 16
/** Distinguishes clients with equal metadata. */
const NONCE_BYTES = 9
/** Maximum characters of an id, which is part of URLs and tokens. */
const MAX_ID = 1_024
const MAX_BYTES = 4_096

export type ClientMetadata = Readonly<Record<string, unknown>>

export type RegisteredClients = ReturnType<typeof createRegisteredClients>

const pick = (metadata: ClientMetadata) =>
  Object.fromEntries(KEPT.flatMap(name => (metadata[name] === undefined ? [] : [[name, metadata[name]]])))

export function createRegisteredClients(keys: readonly Buffer[]) {
  const [first] = keys
  if (!first) throw new Error('there is no signing key')
  const signed = (key: Buffer, body: string) =>
    createHmac('sha256', key).update(`client ${body}`).digest().subarray(0, SIGNATURE_BYTES)

  function read(id: string): { readonly key: Buffer; readonly metadata: ClientMetadata } | undefined {
    if (!id.startsWith(PREFIX) || id.length > MAX_ID) return undefined
    const [body = '', signature = '', ...more] = id.slice(PREFIX.length).split('.')
    const given = Buffer.from(signature, 'base64url')
    // Rejects non-canonical base64url.
    if (more.length > 0 || given.length !== SIGNATURE_BYTES || given.toString('base64url') !== signature)
      return undefined
    const key = keys.find(one => timingSafeEqual(signed(one, body), given))
    if (!key) return undefined
    const metadata: unknown = JSON.parse(
      inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: MAX_BYTES }).toString(),
    )
    return isObject(metadata) ? { key, metadata } : undefined
  }

  const secretBy = (key: Buffer, id: string) => createHmac('sha256', key).update(`secret ${id}`).digest('base64url')

  return {
    /** Returns the id of a client. Throws an Error for the client if the metadata is too long. */
    idOf(metadata: ClientMetadata): string {
      const text = JSON.stringify({ ...pick(metadata), nonce: randomBytes(NONCE_BYTES).toString('base64url') })
      const body = Buffer.byteLength(text) > MAX_BYTES ? '' : deflateRawSync(text, { level: 9 }).toString('base64url')
      const id = `${PREFIX}${body}.${signed(first, body).toString('base64url')}`
      if (body === '' || id.length > MAX_ID)
        throw new Error('the client metadata is too large: use fewer or shorter redirect_uris')
      return id
    },
    secretOf: (id: string): string => secretBy(read(id)?.key ?? first, id),
    find(id: string): ClientMetadata | undefined {
      const found = read(id)
      if (!found) return undefined
      const {
        key,
        metadata: { nonce: _, ...metadata },
      } = found
      const method = metadata['token_endpoint_auth_method'] ?? 'client_secret_basic'
      return { ...metadata, client_id: id, ...(method !== 'none' && { client_secret: secretBy(key, id) }) }
    },
  }
}

type Metadata = Record<string, unknown>

const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

function credentialsOf({ authMethod, clientSecret, keys }: FilledAuthBridge['clients']['fixed'][number]): Metadata {
  if (keys) return { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } }
  if (clientSecret === undefined) return { token_endpoint_auth_method: 'none' }
  return { client_secret: clientSecret, token_endpoint_auth_method: authMethod ?? 'client_secret_basic' }
}

/** Converts configured clients to metadata of oidc-provider. */
export const fixedClients = ({ clients }: FilledAuthBridge): Metadata[] =>
  clients.fixed.map(client => ({
    client_id: client.clientId,
    ...credentialsOf(client),
    ...(client.name !== undefined && { client_name: client.name }),
    redirect_uris: client.redirects,
    grant_types: [...GRANT_TYPES, JWT_BEARER],
  }))

const METHODS = ['none', 'client_secret_basic', 'client_secret_post', 'private_key_jwt']
const MAX_NAME = 200
const MAX_REDIRECTS = 20

const KNOWN = new Set([
  ...['client_id', 'client_secret', 'client_name', 'client_uri', 'redirect_uris', 'grant_types', 'response_types'],
  ...['token_endpoint_auth_method', 'token_endpoint_auth_signing_alg', 'jwks', 'jwks_uri', 'application_type'],
  ...['client_id_issued_at', 'client_secret_expires_at', 'id_token_signed_response_alg', 'subject_type'],
])

const TEXTS = ['token_endpoint_auth_method', 'token_endpoint_auth_signing_alg', 'id_token_signed_response_alg']

const refuse = (why: string) => new errors.InvalidClientMetadata(why)

function checkRedirects(uris: unknown, patterns: readonly RedirectPattern[]): void {
  if (!Array.isArray(uris) || uris.length === 0) throw refuse('redirect_uris must be a list of URIs')
  if (uris.length > MAX_REDIRECTS) throw refuse(`redirect_uris: at most ${MAX_REDIRECTS} of them`)
  const foreign = uris.find(uri => !mayRedirect(patterns, uri))
  if (foreign === undefined) return
  const shown = typeof foreign === 'string' ? JSON.stringify(foreign.slice(0, 200)) : 'a value that is not a string'
  throw refuse(`redirect_uris: ${shown} is not allowed; the operator of this server can add it to clients.redirects`)
}

export const isConfidential = (client: Client) => client.metadata()['token_endpoint_auth_method'] !== 'none'

/** False for public clients, because anyone can use their id, and for native clients (RFC 8252, 8.6). */
export const isRemembered = (client: Client) => isConfidential(client) && client.applicationType === 'web'

function checkTexts(metadata: Metadata): void {
  const unfit = TEXTS.find(name => typeof (metadata[name] ?? '') !== 'string')
  if (unfit !== undefined) throw refuse(`${unfit} must be a text`)
}

/** Normalizes client metadata. `mayAssert`: authentication methods allowed for identity assertions. */
export function settleMetadata(
  metadata: Metadata,
  patterns: readonly RedirectPattern[],
  mayAssert: (method: unknown) => boolean = () => false,
): void {
  dropNulls(metadata)
  checkRedirects(metadata['redirect_uris'], patterns)
  checkTexts(metadata)
  const { client_name: name, token_endpoint_auth_method: method, grant_types: grants } = metadata
  if (typeof name === 'string' && name.length > MAX_NAME) throw refuse(`client_name: at most ${MAX_NAME} characters`)
  if (method !== undefined && !(typeof method === 'string' && METHODS.includes(method)))
    throw refuse(`token_endpoint_auth_method must be one of ${METHODS.join(', ')}`)
  for (const key of Object.keys(metadata)) if (!KNOWN.has(key)) delete metadata[key]
  // Redirects other than https stay on the user's machine (RFC 8252).
  const isWeb = (metadata['redirect_uris'] as string[]).every(uri => uri.startsWith('https:'))
  metadata['application_type'] = isWeb ? 'web' : 'native'
  metadata['response_types'] = ['code']
  metadata['response_modes'] = ['query']
  metadata['subject_type'] = 'public'
  metadata['id_token_signed_response_alg'] = 'ES256'
  // Unsupported grants are dropped, not rejected.
  const requested = Array.isArray(grants) ? grants : []
  const known: readonly unknown[] = mayAssert(method ?? 'none') ? [...GRANT_TYPES, JWT_BEARER] : GRANT_TYPES
  const used = requested.filter(one => known.includes(one))
  metadata['grant_types'] = [...new Set(['authorization_code', ...used])]
}

export function registrationOf(body: unknown): Metadata {
  if (!isObject(body)) return {}
  dropNulls(body)
  checkTexts(body)
  body['token_endpoint_auth_method'] ??= 'client_secret_basic'
  if (body['token_endpoint_auth_method'] === 'private_key_jwt')
    throw refuse('token_endpoint_auth_method: a client with keys is named by the URL of its metadata document here')
  return body
}
