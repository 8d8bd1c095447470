// Requests access tokens without a user for one API: client credentials and token exchange (RFC 8693).
import type { ClientContext } from './context.ts'
import { type Authority, createAuthorityFinder, discoverServer, serverFromTokenEndpoint } from './discovery.ts'
import { createDPoPSigner, type DPoPSigner } from './dpop.ts'
import { createOAuthHttp } from './http.ts'
import { createNetPolicy, type NetworkPolicy } from './net-policy.ts'
import { resolveOptions } from './resolve-options.ts'
import type { ClientIdentity } from './stores.ts'
import { createSecrets } from './text.ts'
import { requestToken, type TokenResult } from './token-endpoint.ts'

export interface TokenClientOptions {
  /** The API. Without `issuer` and `tokenEndpoint`, its resource metadata names the issuer. */
  readonly apiUrl: string
  readonly issuer?: string | undefined
  readonly tokenEndpoint?: string | undefined
  /** Policy for a token endpoint that is not in the config. Without it, the token endpoint can have any address. */
  readonly networkPolicy?: NetworkPolicy | undefined
  readonly clientId: string
  readonly clientSecret?: string | undefined
  /** PKCS#8 PEM or a private JWK as JSON, for private_key_jwt. */
  readonly privateKey?: string | undefined
  readonly dpop?: boolean | undefined
}

export type TokenClient = ReturnType<typeof createTokenClient>

const isJwk = (key: string): boolean => key.trimStart().startsWith('{')

/** Throws an AuthError `invalid_options`. */
export function createTokenClient(config: TokenClientOptions) {
  const { apiUrl, issuer, tokenEndpoint, networkPolicy, clientId, clientSecret, privateKey, dpop = false } = config
  const options = resolveOptions({
    serverUrl: apiUrl,
    clientId,
    grant: { type: 'client_credentials' },
    interactive: 'never',
    dpop,
    ...(tokenEndpoint !== undefined && { tokenEndpoint }),
    ...(privateKey !== undefined && { privateKey: isJwk(privateKey) ? JSON.parse(privateKey) : privateKey }),
  })
  const secrets = createSecrets()
  secrets.add(clientSecret, privateKey)
  // The operator configures the issuer, which can be in the same private network as the host.
  const policy = createNetPolicy(issuer ?? apiUrl, networkPolicy, networkPolicy ? undefined : tokenEndpoint)
  const http = createOAuthHttp({ fetch: options.fetch, policy, secrets })
  const ctx: ClientContext = { options, http, secrets, emit: () => undefined, now: Date.now }
  const finder = createAuthorityFinder(ctx)
  let signer: Promise<DPoPSigner> | undefined
  let authority: Promise<Pick<Authority, 'server' | 'resource'>> | undefined

  async function find(signal: AbortSignal): Promise<Pick<Authority, 'server' | 'resource'>> {
    if (issuer !== undefined) {
      return { server: await discoverServer(ctx, issuer, false, signal, tokenEndpoint), resource: undefined }
    }
    if (tokenEndpoint === undefined) return finder.find([], signal)
    return { server: serverFromTokenEndpoint(tokenEndpoint, tokenEndpoint), resource: undefined }
  }

  function getAuthority(): Promise<Pick<Authority, 'server' | 'resource'>> {
    // The request is independent of one caller: the next caller can use the result.
    authority ??= find(new AbortController().signal).catch((error: unknown) => {
      authority = undefined
      throw error
    })
    return authority
  }

  const getSigner = (): Promise<DPoPSigner> => {
    signer ??= createDPoPSigner()
    return signer
  }

  return {
    /** Throws an AuthError without secrets. */
    async request(
      grantType: string,
      parameters: Readonly<Record<string, string | undefined>>,
      signal: AbortSignal,
    ): Promise<TokenResult> {
      const { server, resource } = await getAuthority()
      const secret = clientSecret === undefined ? {} : { clientSecret }
      const client: ClientIdentity = { source: 'configured', issuer: server.issuer, clientId, ...secret }
      const request = { server, client, grantType, parameters: { resource, ...parameters } }
      return requestToken(ctx, { ...request, dpop: dpop ? await getSigner() : undefined }, signal)
    },
    /** The headers of a request to the API, as alternating names and values. */
    async headers(
      { accessToken, tokenType }: Pick<TokenResult, 'accessToken' | 'tokenType'>,
      method: string,
      url: string,
    ): Promise<readonly string[]> {
      if (tokenType === 'Bearer') return ['authorization', `Bearer ${accessToken}`]
      const proof = await (await getSigner()).proof(method, url, accessToken)
      return ['authorization', `DPoP ${accessToken}`, 'dpop', proof]
    },
    /** Stores a nonce of the API for DPoP proofs. */
    rememberNonce: (origin: string, nonce: string): void =>
      void signer?.then(known => known.rememberNonce(origin, nonce)),
  }
}
