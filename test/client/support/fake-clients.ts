// The clients of a fake authorization server: registration (RFC 7591) and authentication.
import { randomBytes } from 'node:crypto'
import jwt from 'jsonwebtoken'
import type { RecordedRequest, Reply } from './recording-server.ts'

export interface FakeClient {
  readonly client_id: string
  readonly client_secret?: string | undefined
  /** Default: `client_secret_basic` with a secret, else `none`. */
  readonly token_endpoint_auth_method?: string | undefined
  /** Absent: any. */
  readonly redirect_uris?: readonly string[] | undefined
  /** A PEM, for `private_key_jwt`. */
  readonly publicKey?: string | undefined
}

export interface RegistrationSettings {
  /** Off: no endpoint is published. A reply: that is the answer to everyone. */
  registration: 'on' | 'off' | Reply
  registrationStatus: number
  /** The method that is registered; undefined: the one asked for. */
  registrationMethod: string | undefined
  /** `client_secret_expires_at`, in seconds since the epoch; undefined: not said. */
  secretExpiresAt: number | undefined
  /** When set, registration needs it as a bearer token. */
  initialAccessToken: string | undefined
  clientMetadataDocuments: boolean
}

export interface FakeClients {
  add(client: FakeClient): void
  /** Does not know this one any more; without an id: anybody. */
  forget(clientId?: string): void
  /** A registered one; one with a metadata document where those are supported. */
  find(clientId: string | null): FakeClient | undefined
  register(request: RecordedRequest): Reply
  /** The client of a request to the token endpoint, or undefined when it proves nothing. */
  authenticate(request: RecordedRequest, issuer: string): FakeClient | undefined
}

const decodeForm = (text: string) => decodeURIComponent(text.replaceAll('+', ' '))

export const methodOf = ({ token_endpoint_auth_method, client_secret }: FakeClient): string =>
  token_endpoint_auth_method ?? (client_secret === undefined ? 'none' : 'client_secret_basic')

/** What a request shows: the method, the client, and its proof. */
function shown({ headers, form }: RecordedRequest): { method: string; id: string | null; proof: string | null } {
  const [, basic] = /^Basic (.+)$/.exec(headers.authorization ?? '') ?? []
  if (basic !== undefined) {
    const [id = '', ...rest] = Buffer.from(basic, 'base64').toString().split(':')
    return { method: 'client_secret_basic', id: decodeForm(id), proof: decodeForm(rest.join(':')) }
  }
  const assertion = form.get('client_assertion')
  if (assertion !== null) {
    const subject = jwt.decode(assertion)?.sub
    return { method: 'private_key_jwt', id: typeof subject === 'string' ? subject : null, proof: assertion }
  }
  const secret = form.get('client_secret')
  return { method: secret === null ? 'none' : 'client_secret_post', id: form.get('client_id'), proof: secret }
}

export function createFakeClients(settings: RegistrationSettings, keep: (secret: string) => string): FakeClients {
  const known = new Map<string, FakeClient>()
  const usedIds = new Set<string>()

  function isGoodAssertion({ client_id, publicKey }: FakeClient, assertion: string, issuer: string): boolean {
    const claims = jwt.verify(assertion, publicKey ?? '', { audience: issuer, issuer: client_id, subject: client_id })
    if (typeof claims === 'string' || claims.jti === undefined || usedIds.has(claims.jti)) return false
    usedIds.add(claims.jti)
    return (claims.exp ?? Number.POSITIVE_INFINITY) - (claims.iat ?? 0) <= 60
  }

  const clients: FakeClients = {
    add(client) {
      known.set(client.client_id, client)
      if (client.client_secret !== undefined) keep(client.client_secret)
    },
    forget: clientId => (clientId === undefined ? known.clear() : void known.delete(clientId)),
    find(clientId) {
      if (clientId === null) return undefined
      const isDocument = settings.clientMetadataDocuments && clientId.startsWith('https://')
      return known.get(clientId) ?? (isDocument ? { client_id: clientId } : undefined)
    },
    register({ headers, body }) {
      if (settings.registration !== 'on')
        return settings.registration === 'off' ? { status: 404 } : settings.registration
      const { initialAccessToken, secretExpiresAt } = settings
      if (initialAccessToken !== undefined && headers.authorization !== `Bearer ${initialAccessToken}`) {
        return { status: 401, body: { error: 'invalid_token' } }
      }
      const metadata = JSON.parse(body) as Record<string, unknown>
      const method = settings.registrationMethod ?? String(metadata['token_endpoint_auth_method'])
      const client = {
        ...metadata,
        client_id: `client-${randomBytes(8).toString('hex')}`,
        token_endpoint_auth_method: method,
        ...(method.startsWith('client_secret') && { client_secret: `secret-${randomBytes(24).toString('base64url')}` }),
        ...(secretExpiresAt !== undefined && { client_secret_expires_at: secretExpiresAt }),
      } as FakeClient
      clients.add(client)
      return { status: settings.registrationStatus, body: client }
    },
    authenticate(request, issuer) {
      const { method, id, proof } = shown(request)
      const client = clients.find(id)
      if (client === undefined || methodOf(client) !== method) return undefined
      if (method === 'none') return client
      if (method !== 'private_key_jwt') return proof === client.client_secret ? client : undefined
      try {
        return isGoodAssertion(client, proof ?? '', issuer) ? client : undefined
      } catch {
        return undefined
      }
    },
  }
  return clients
}
