// Configured clients as metadata of oidc-provider.
import type { FilledAuthBridge } from '../options.ts'

type FixedClient = FilledAuthBridge['clients']['fixed'][number]
type Metadata = Record<string, unknown>

export const GRANT_TYPES = ['authorization_code', 'refresh_token'] as const
export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

function credentialsOf({ authMethod, clientSecret, keys }: FixedClient): Metadata {
  if (keys) return { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys } }
  if (clientSecret === undefined) return { token_endpoint_auth_method: 'none' }
  return { client_secret: clientSecret, token_endpoint_auth_method: authMethod ?? 'client_secret_basic' }
}

export const fixedClients = ({ clients }: FilledAuthBridge): Metadata[] =>
  (clients.fixed ?? []).map(client => ({
    client_id: client.clientId,
    ...credentialsOf(client),
    ...(client.name !== undefined && { client_name: client.name }),
    redirect_uris: client.redirects,
    grant_types: [...GRANT_TYPES, JWT_BEARER],
  }))

export function fixedClientProblem({ authMethod, clientSecret, keys }: FixedClient): string | undefined {
  if (keys && clientSecret !== undefined) return 'it has a secret and keys; leave one of them out'
  if (authMethod === 'private_key_jwt' && !keys) return 'private_key_jwt needs keys, its public keys as JWKs'
  if (keys && authMethod !== undefined && authMethod !== 'private_key_jwt') return `${authMethod} needs no keys`
  if (authMethod?.startsWith('client_secret') && clientSecret === undefined) return `${authMethod} needs clientSecret`
  const isPrivate = keys?.some(key => ['d', 'k'].some(part => key[part] !== undefined)) ?? false
  return isPrivate
    ? 'keys has a private or symmetric key; put the public half here, and keep the other with the client'
    : undefined
}
