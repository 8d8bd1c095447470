// Authorization server metadata (RFC 8414, OpenID Connect Discovery). oauth4webapi is not used: it lacks one of the
// three locations, and normalizes issuers before comparison.
import type { ClientContext } from './context.ts'
import { AuthError, type Fix } from './errors.ts'
import type { ServerInfo } from './parties.ts'
import { isObject, printableUrl, readText } from './text.ts'

export type Members = Readonly<Record<string, unknown>>

export type Lookup =
  | { readonly kind: 'found'; readonly members: Members }
  | { readonly kind: 'not-json' }
  /** `busy`: temporarily unavailable (408, 429). */
  | { readonly kind: 'absent'; readonly status: number; readonly busy: boolean }

export const unavailable = (what: string, url: string, status: number): AuthError =>
  new AuthError(`${what} at ${printableUrl(url)} answers ${status}`, {
    code: 'temporarily_unavailable',
    fix: 'try again later; if it stays so, tell the operator of that server',
    retryable: true,
  })

/** 4xx and 502 count as absent: some gateways send 502. Another 5xx throws `temporarily_unavailable`. */
export async function lookUp(ctx: ClientContext, url: string, what: string, signal: AbortSignal): Promise<Lookup> {
  const { status, json } = await ctx.http.getJson(url, { what, signal })
  if (status >= 200 && status < 300) return isObject(json) ? { kind: 'found', members: json } : { kind: 'not-json' }
  if (status >= 500 && status !== 502) throw unavailable(what, url, status)
  return { kind: 'absent', status, busy: status === 408 || status === 429 }
}

export interface Search<Found> {
  readonly found?: Found
  readonly failure?: unknown
}

/** Tries URLs in order. With `stopIfUnavailable`, a temporary failure ends the search. */
export async function findDocument<Found>(
  urls: readonly string[],
  read: (url: string) => Promise<Found | undefined>,
  { signal, stopIfUnavailable }: { readonly signal: AbortSignal; readonly stopIfUnavailable: boolean },
): Promise<Search<Found>> {
  let failure: unknown
  for (const url of urls) {
    try {
      const found = await read(url)
      if (found !== undefined) return { found }
    } catch (thrown) {
      if (signal.aborted || !AuthError.is(thrown) || (stopIfUnavailable && thrown.retryable)) throw thrown
      if (thrown.code === 'blocked_address') throw thrown
      failure ??= thrown
    }
  }
  return { failure }
}

export const textOf = (members: Members, name: string): string | undefined => readText(members[name])

export const listOf = (members: Members, name: string): readonly string[] | undefined => {
  const value = members[name]
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : undefined
}

const WHAT = 'The authorization server metadata'
const OAUTH = '/.well-known/oauth-authorization-server'
const OIDC = '/.well-known/openid-configuration'

const invalid = (what: string, fix: string): AuthError => new AuthError(what, { code: 'invalid_server_metadata', fix })

/** The root belongs to another issuer if this issuer has a path (RFC 8414 §3.1). */
function metadataUrls(issuer: URL): string[] {
  const { origin } = issuer
  const path = issuer.pathname.replace(/\/$/, '')
  if (path === '') return [`${origin}${OAUTH}`, `${origin}${OIDC}`]
  return [`${origin}${OAUTH}${path}`, `${origin}${OIDC}${path}`, `${origin}${path}${OIDC}`]
}

function checkListed(ctx: ClientContext, listed: string): URL {
  const url = ctx.http.check(listed, 'The authorization server')
  if (!/[?#]/.test(listed)) return url
  throw new AuthError(`The authorization server ${printableUrl(listed)} has a query or fragment`, {
    code: 'invalid_resource_metadata',
    fix: 'the publisher of the resource metadata must list an issuer identifier (RFC 8414 §2)',
  })
}

function differBySlash(one: string, other: string): boolean {
  const [short, long] = one.length < other.length ? [one, other] : [other, one]
  return long === `${short}/` && URL.canParse(long) && new URL(long).pathname === '/'
}

function checkIssuer(ctx: ClientContext, members: Members, listed: string, legacy: boolean, url: string): string {
  const { issuerMatch, trustedIssuers = {} } = ctx.options
  const issuer = textOf(members, 'issuer')
  const mismatch = (why: string, fix: Fix) =>
    new AuthError(`${WHAT} at ${printableUrl(url)} ${why}`, { code: 'issuer_mismatch', fix })
  if (issuer === undefined) throw mismatch('has no `issuer`', `its publisher must give ${printableUrl(listed)} there`)
  if (issuer === listed) return issuer
  const bySlash = differBySlash(issuer, listed)
  // A legacy server's identifier is its origin, with or without a slash.
  if (legacy && bySlash) return issuer
  if (bySlash && issuerMatch === 'ignore-trailing-slash') {
    ctx.emit('tolerated', { what: `issuer ${printableUrl(issuer)} for ${printableUrl(listed)}`, option: 'issuerMatch' })
    return issuer
  }
  if (trustedIssuers[listed]?.includes(issuer)) {
    ctx.emit('tolerated', {
      what: `issuer ${printableUrl(issuer)} for ${printableUrl(listed)}`,
      option: 'trustedIssuers',
    })
    return issuer
  }
  const shown = printableUrl(issuer)
  const fix: Fix = bySlash
    ? {
        text: 'only the final slash differs: if you know this server,',
        option: 'issuerMatch',
        value: 'ignore-trailing-slash',
      }
    : {
        text: 'it could impersonate another server; only if that server documents this issuer,',
        option: 'trustedIssuers',
        value: { [printableUrl(listed)]: [shown] },
      }
  throw mismatch(`names the issuer ${shown} instead of ${printableUrl(listed)}`, fix)
}

function checkEndpoint(ctx: ClientContext, members: Members, name: string, url: string, isNeeded: boolean): void {
  const endpoint = textOf(members, name)
  if (endpoint !== undefined) ctx.http.check(endpoint, `The \`${name}\` of ${printableUrl(url)}`)
  else if (isNeeded) throw invalid(`${WHAT} at ${printableUrl(url)} has no \`${name}\``, 'its publisher must give it')
}

const isCodeGrant = ({ options }: ClientContext): boolean => options.grant.type === 'authorization_code'

interface Wanted {
  readonly listed: string
  readonly legacy: boolean
  readonly tokenEndpoint: string | undefined
}

function readDocument(ctx: ClientContext, members: Members, wanted: Wanted, url: string): ServerInfo {
  const { listed, legacy, tokenEndpoint } = wanted
  const issuer = checkIssuer(ctx, members, listed, legacy, url)
  checkEndpoint(ctx, members, 'authorization_endpoint', url, isCodeGrant(ctx))
  if (tokenEndpoint === undefined) checkEndpoint(ctx, members, 'token_endpoint', url, true)
  const vouched = ctx.options.assumePkceS256?.some(known => known === issuer || known === listed) ?? false
  const pkce = listOf(members, 'code_challenge_methods_supported')?.includes('S256') ?? false
  if (vouched && !pkce)
    ctx.emit('tolerated', { what: `no PKCE methods listed by ${printableUrl(listed)}`, option: 'assumePkceS256' })
  return {
    listed,
    issuer,
    authorizationEndpoint: textOf(members, 'authorization_endpoint'),
    tokenEndpoint: tokenEndpoint ?? textOf(members, 'token_endpoint'),
    ...(tokenEndpoint !== undefined && { tokenEndpointGiven: true }),
    registrationEndpoint: textOf(members, 'registration_endpoint'),
    revocationEndpoint: textOf(members, 'revocation_endpoint'),
    deviceAuthorizationEndpoint: textOf(members, 'device_authorization_endpoint'),
    scopesSupported: listOf(members, 'scopes_supported'),
    grantTypesSupported: listOf(members, 'grant_types_supported'),
    tokenEndpointAuthMethodsSupported: listOf(members, 'token_endpoint_auth_methods_supported'),
    dpopSigningAlgValuesSupported: listOf(members, 'dpop_signing_alg_values_supported'),
    issParameterSupported: members['authorization_response_iss_parameter_supported'] === true,
    clientIdMetadataDocumentSupported: members['client_id_metadata_document_supported'] === true,
    pkceS256: pkce || vouched,
    oidc: url.includes(OIDC) || listOf(members, 'subject_types_supported') !== undefined,
    legacy: false,
    metadataUrl: url,
  }
}

const withoutDocument = { issParameterSupported: false, clientIdMetadataDocumentSupported: false, oidc: false } as const

const defaultEndpoints = (origin: string, tokenEndpoint: string | undefined): ServerInfo => ({
  ...withoutDocument,
  listed: origin,
  issuer: origin,
  authorizationEndpoint: `${origin}/authorize`,
  tokenEndpoint: tokenEndpoint ?? `${origin}/token`,
  ...(tokenEndpoint !== undefined && { tokenEndpointGiven: true }),
  registrationEndpoint: `${origin}/register`,
  pkceS256: true,
  legacy: true,
  metadataUrl: undefined,
})

export const tokenEndpointAlone = (listed: string, tokenEndpoint: string): ServerInfo => ({
  ...withoutDocument,
  listed,
  issuer: listed,
  tokenEndpoint,
  tokenEndpointGiven: true,
  pkceS256: false,
  legacy: false,
  metadataUrl: undefined,
})

function refusePkce({ issuer, metadataUrl }: ServerInfo): never {
  throw new AuthError(
    `${printableUrl(issuer)} does not say in ${printableUrl(metadataUrl ?? issuer)} that it does PKCE`,
    {
      code: 'pkce_unsupported',
      fix: {
        text: 'its operator must list S256 in `code_challenge_methods_supported`; where it is known to do it all the same,',
        option: 'assumePkceS256',
        value: [printableUrl(issuer)],
      },
    },
  )
}

/**
 * Fetches authorization server metadata. Not cached. `legacy`: the server's origin. `tokenEndpoint` overrides the
 * published one. Throws AuthErrors `issuer_mismatch`, `pkce_unsupported`, `invalid_server_metadata`,
 * `temporarily_unavailable`, `malformed_response`, `insecure_endpoint`, `blocked_address`.
 */
export async function discoverServer(
  ctx: ClientContext,
  listed: string,
  legacy: boolean,
  signal: AbortSignal,
  tokenEndpoint?: string,
): Promise<ServerInfo> {
  const urls = metadataUrls(checkListed(ctx, listed))
  let busyStatus: number | undefined
  async function read(url: string): Promise<ServerInfo | undefined> {
    const lookup = await lookUp(ctx, url, WHAT, signal)
    if (lookup.kind === 'absent' && lookup.busy) busyStatus = lookup.status
    if (lookup.kind !== 'found') return undefined
    const server = readDocument(ctx, lookup.members, { listed, legacy, tokenEndpoint }, url)
    return server.pkceS256 || !isCodeGrant(ctx) ? server : refusePkce(server)
  }
  const { found, failure } = await findDocument(urls, read, { signal, stopIfUnavailable: true })
  if (found) return found
  if (failure !== undefined) throw failure
  if (busyStatus !== undefined) throw unavailable(WHAT, urls[0] ?? listed, busyStatus)
  if (legacy) return defaultEndpoints(listed, tokenEndpoint)
  if (tokenEndpoint !== undefined && !isCodeGrant(ctx)) return tokenEndpointAlone(listed, tokenEndpoint)
  throw invalid(
    `${printableUrl(listed)} publishes no authorization server metadata`,
    `its operator must publish it at ${urls[0]}; or the resource lists a wrong address`,
  )
}
