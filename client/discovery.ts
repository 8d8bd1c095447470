// Discovers metadata of protected resources (RFC 9728) and authorization servers (RFC 8414, OpenID Connect Discovery).
// oauth4webapi is not used: it lacks one of the three locations, and normalizes issuers before comparison.
import type { ClientContext } from './context.ts'
import { AuthError, type Fix } from './errors.ts'
import { isLoopback } from './resolve-options.ts'
import type { ServerInfo } from './stores.ts'
import { isObject, isScope, printableUrl, readText } from './text.ts'

type Members = Readonly<Record<string, unknown>>

const unavailableError = (label: string, url: string, status: number): AuthError =>
  new AuthError(`${label} at ${printableUrl(url)} answers ${status}`, {
    code: 'temporarily_unavailable',
    fix: 'try again later; if it stays so, tell the operator of that server',
    retryable: true,
  })

interface DocumentQuery {
  readonly label: string
  readonly urls: readonly string[]
  /** The URLs come from the server's challenge: JSON is required, and a temporary failure does not end the search. */
  readonly fromChallenge?: boolean
}

/** Reads the first document. Statuses 4xx and 502 count as absent, because some gateways send 502. */
async function findDocument<Found>(
  ctx: ClientContext,
  { label, urls, fromChallenge = false }: DocumentQuery,
  read: (members: Members, url: string) => Found,
  signal: AbortSignal,
): Promise<{ readonly found?: Found; readonly failure?: unknown }> {
  let failure: unknown
  let temporary: unknown
  for (const url of urls) {
    if (fromChallenge && URL.canParse(url) && new URL(url).origin !== new URL(ctx.options.serverUrl).origin) {
      ctx.emit('resource-metadata-cross-origin', { url: printableUrl(url) })
    }
    try {
      const { status, json } = await ctx.http.getJson(url, { label, signal })
      const isOk = status >= 200 && status < 300
      if (isOk && isObject(json)) return { found: read(json, url) }
      if (isOk && fromChallenge) {
        const fix = 'its publisher must serve the document at the address that its challenge names'
        throw invalidResource(url, 'is not a JSON object', fix)
      }
      if (status >= 500 && status !== 502) throw unavailableError(label, url, status)
      if (!fromChallenge && (status === 408 || status === 429)) temporary ??= unavailableError(label, url, status)
    } catch (thrown) {
      if (signal.aborted || !AuthError.is(thrown) || (!fromChallenge && thrown.retryable)) throw thrown
      if (thrown.code === 'blocked_address') throw thrown
      failure ??= thrown
    }
  }
  return { failure: failure ?? temporary }
}

const textMember = (members: Members, name: string): string | undefined => readText(members[name])

const listMember = (members: Members, name: string): readonly string[] | undefined => {
  const value = members[name]
  return Array.isArray(value) ? value.filter((entry): entry is string => typeof entry === 'string') : undefined
}

const RESOURCE_METADATA = 'The resource metadata'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

const MAX_CHALLENGE_URLS = 5

export interface ResourceInfo {
  readonly resource: string | undefined
  readonly authorizationServers: readonly string[]
  readonly scopesSupported: readonly string[] | undefined
  readonly metadataUrl: string | undefined
  readonly dpopRequired: boolean
  /** No metadata document: the server is its own authorization server (2025-03-26). */
  readonly legacy: boolean
}

const invalidResource = (url: string, why: string, fix: string): AuthError =>
  new AuthError(`${RESOURCE_METADATA} at ${printableUrl(url)} ${why}`, { code: 'invalid_resource_metadata', fix })

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

function matchesResource(
  resource: string,
  serverUrl: string,
  match: ClientContext['options']['resourceMatch'],
): boolean {
  if (!URL.canParse(resource) || resource.includes('#')) return false
  const named = new URL(resource)
  const server = new URL(serverUrl)
  if (named.username || named.password || named.origin === 'null' || named.origin !== server.origin) return false
  const [path, serverPath] = [withoutSlash(named.pathname), withoutSlash(server.pathname)]
  return path === '' || path === serverPath || (match === 'path-prefix' && serverPath.startsWith(`${path}/`))
}

/** Returns the server URL with the host name of `resource`, if both are loopback URLs of the same server. */
function otherLoopbackUrl(resource: string, serverUrl: string): string | undefined {
  if (!URL.canParse(resource)) return undefined
  const [{ hostname }, url] = [new URL(resource), new URL(serverUrl)]
  if (!isLoopback(hostname) || !isLoopback(url.hostname)) return undefined
  url.hostname = hostname
  return matchesResource(resource, url.href, 'exact-or-origin') ? url.href : undefined
}

function checkResource(ctx: ClientContext, members: Members, url: string): string {
  const { serverUrl, resourceMatch } = ctx.options
  const resource = textMember(members, 'resource')
  if (resource === undefined) {
    throw invalidResource(
      url,
      'has no `resource`',
      `its publisher must name the server there, such as ${printableUrl(serverUrl)}`,
    )
  }
  if (matchesResource(resource, serverUrl, resourceMatch)) return resource
  const isParent = matchesResource(resource, serverUrl, 'path-prefix')
  const other = otherLoopbackUrl(resource, serverUrl)
  throw new AuthError(
    `${RESOURCE_METADATA} at ${printableUrl(url)} is about ${printableUrl(resource)}, not about ${printableUrl(serverUrl)}`,
    {
      code: 'resource_mismatch',
      fix: isParent
        ? { text: 'if tokens for the parent path are meant,', option: 'resourceMatch', value: 'path-prefix' }
        : other !== undefined
          ? { text: 'use the host name from the metadata:', option: 'serverUrl', value: other }
          : 'check serverUrl; if it is correct, the publisher must correct `resource`: tokens would be valid for another server',
    },
  )
}

function checkServers(members: Members, url: string): readonly string[] {
  const listed = members['authorization_servers']
  if (!Array.isArray(listed) || listed.length === 0) {
    throw invalidResource(url, 'lists no `authorization_servers`', 'its publisher must name at least one')
  }
  const invalid = listed.find(entry => typeof entry !== 'string' || !URL.canParse(entry))
  if (invalid === undefined) return listed as string[]
  const shown =
    typeof invalid === 'string' ? `"${printableUrl(invalid)}"` : `of type ${invalid === null ? 'null' : typeof invalid}`
  throw invalidResource(url, `lists the authorization server ${shown}`, 'its publisher must use absolute URLs')
}

function readResource(ctx: ClientContext, members: Members, url: string): ResourceInfo {
  const scopes = listMember(members, 'scopes_supported')?.filter(isScope)
  return {
    resource: checkResource(ctx, members, url),
    authorizationServers: checkServers(members, url),
    scopesSupported: scopes?.length ? scopes : undefined,
    metadataUrl: url,
    dpopRequired: members['dpop_bound_access_tokens_required'] === true,
    legacy: false,
  }
}

/** Lists the path-specific URL first, then the root (RFC 9728 §3.1). */
function wellKnownUrls(serverUrl: string): string[] {
  const { origin, pathname } = new URL(serverUrl)
  return [...new Set([`${origin}${WELL_KNOWN}${withoutSlash(pathname)}`, `${origin}${WELL_KNOWN}`])]
}

/**
 * Finds the server's metadata (RFC 9728 §3, §5). Not cached. Throws AuthErrors `invalid_resource_metadata`,
 * `resource_mismatch`, `no_authorization_server`, `temporarily_unavailable`, `malformed_response`, `insecure_endpoint`
 * and `blocked_address`.
 */
export async function discoverResource(
  ctx: ClientContext,
  metadataUrls: readonly string[],
  signal: AbortSignal,
): Promise<ResourceInfo> {
  const label = RESOURCE_METADATA
  const named = metadataUrls.slice(0, MAX_CHALLENGE_URLS)
  const read = (members: Members, url: string) => readResource(ctx, members, url)
  const first = await findDocument(ctx, { label, urls: named, fromChallenge: true }, read, signal)
  if (first.found) return first.found
  // Continues after an invalid document: a proxy can change the URL of a challenge. Every document must name this resource.
  const unusable = first.failure === undefined ? [] : named
  const urls = wellKnownUrls(ctx.options.serverUrl).filter(url => !unusable.includes(url))
  const { found, failure } = await findDocument(ctx, { label, urls }, read, signal)
  if (found) return found
  if (first.failure !== undefined || failure !== undefined) throw first.failure ?? failure
  const { serverUrl, legacyFallback } = ctx.options
  const { origin } = new URL(serverUrl)
  if (!legacyFallback) {
    throw new AuthError(`${printableUrl(serverUrl)} requires authorization and publishes no resource metadata`, {
      code: 'no_authorization_server',
      fix: {
        text: `its operator must publish it at ${wellKnownUrls(serverUrl)[0]}, or`,
        option: 'legacyFallback',
        value: true,
      },
    })
  }
  return defaultInfo(origin, true)
}

const SERVER_METADATA = 'The authorization server metadata'
const OAUTH = '/.well-known/oauth-authorization-server'
const OIDC = '/.well-known/openid-configuration'

const invalidServer = (what: string, fix: string) => new AuthError(what, { code: 'invalid_server_metadata', fix })

/** The root belongs to another issuer if this issuer has a path (RFC 8414 §3.1). */
function metadataUrls(issuer: URL): string[] {
  const { origin } = issuer
  const path = withoutSlash(issuer.pathname)
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
  const issuer = textMember(members, 'issuer')
  const mismatch = (why: string, fix: Fix) =>
    new AuthError(`${SERVER_METADATA} at ${printableUrl(url)} ${why}`, { code: 'issuer_mismatch', fix })
  if (issuer === undefined) throw mismatch('has no `issuer`', `its publisher must give ${printableUrl(listed)} there`)
  if (issuer === listed) return issuer
  const bySlash = differBySlash(issuer, listed)
  // A legacy server's identifier is its origin, with or without a slash.
  if (legacy && bySlash) return issuer
  const printableIssuer = printableUrl(issuer)
  const allowedBy =
    (bySlash && issuerMatch === 'ignore-trailing-slash' && 'issuerMatch') ||
    (trustedIssuers[listed]?.includes(issuer) && 'trustedIssuers')
  if (allowedBy) {
    ctx.emit('tolerated', { what: `issuer ${printableIssuer} for ${printableUrl(listed)}`, option: allowedBy })
    return issuer
  }
  const [issuerRest, listedRest] = [issuer, listed].map(one => one.replace(/^https?:/i, ''))
  if (issuerRest === listedRest) {
    const fix =
      'only the scheme differs: correct the URL in the client option or resource metadata, or `issuer` in the server metadata'
    throw mismatch(`names the issuer ${printableIssuer} instead of ${printableUrl(listed)}`, fix)
  }
  const fix: Fix = bySlash
    ? {
        text: 'only the final slash differs: if you trust this server,',
        option: 'issuerMatch',
        value: 'ignore-trailing-slash',
      }
    : {
        text: 'it could impersonate another server; only if that server documents this issuer,',
        option: 'trustedIssuers',
        value: { [printableUrl(listed)]: [printableIssuer] },
      }
  throw mismatch(`names the issuer ${printableIssuer} instead of ${printableUrl(listed)}`, fix)
}

function checkEndpoint(ctx: ClientContext, members: Members, name: string, url: string, isNeeded: boolean): void {
  const endpoint = textMember(members, name)
  if (endpoint !== undefined) ctx.http.check(endpoint, `The \`${name}\` of ${printableUrl(url)}`)
  else if (isNeeded)
    throw invalidServer(`${SERVER_METADATA} at ${printableUrl(url)} has no \`${name}\``, 'its publisher must add it')
}

const isCodeGrant = ({ options }: ClientContext): boolean => options.grant.type === 'authorization_code'

interface ServerQuery {
  readonly listed: string
  readonly legacy: boolean
  readonly tokenEndpoint: string | undefined
}

function readServer(ctx: ClientContext, members: Members, query: ServerQuery, url: string): ServerInfo {
  const { listed, legacy, tokenEndpoint } = query
  const issuer = checkIssuer(ctx, members, listed, legacy, url)
  checkEndpoint(ctx, members, 'authorization_endpoint', url, isCodeGrant(ctx))
  if (tokenEndpoint === undefined) checkEndpoint(ctx, members, 'token_endpoint', url, true)
  const assumed = ctx.options.assumePkceS256?.some(known => known === issuer || known === listed) ?? false
  const pkce = listMember(members, 'code_challenge_methods_supported')?.includes('S256') ?? false
  if (assumed && !pkce)
    ctx.emit('tolerated', { what: `no PKCE methods listed by ${printableUrl(listed)}`, option: 'assumePkceS256' })
  return {
    listed,
    issuer,
    authorizationEndpoint: textMember(members, 'authorization_endpoint'),
    tokenEndpoint: tokenEndpoint ?? textMember(members, 'token_endpoint'),
    ...(tokenEndpoint !== undefined && { tokenEndpointGiven: true }),
    registrationEndpoint: textMember(members, 'registration_endpoint'),
    revocationEndpoint: textMember(members, 'revocation_endpoint'),
    deviceAuthorizationEndpoint: textMember(members, 'device_authorization_endpoint'),
    scopesSupported: listMember(members, 'scopes_supported'),
    grantTypesSupported: listMember(members, 'grant_types_supported'),
    tokenEndpointAuthMethodsSupported: listMember(members, 'token_endpoint_auth_methods_supported'),
    issParameterSupported: members['authorization_response_iss_parameter_supported'] === true,
    clientIdMetadataDocumentSupported: members['client_id_metadata_document_supported'] === true,
    pkceS256: pkce || assumed,
    oidc: url.includes(OIDC) || listMember(members, 'subject_types_supported') !== undefined,
    legacy: false,
    metadataUrl: url,
  }
}

const withoutMetadata = (listed: string, tokenEndpoint: string): ServerInfo => ({
  listed,
  issuer: listed,
  tokenEndpoint,
  issParameterSupported: false,
  clientIdMetadataDocumentSupported: false,
  oidc: false,
  pkceS256: false,
  legacy: false,
  metadataUrl: undefined,
})

const defaultEndpoints = (origin: string, tokenEndpoint: string | undefined): ServerInfo => ({
  ...withoutMetadata(origin, tokenEndpoint ?? `${origin}/token`),
  ...(tokenEndpoint !== undefined && { tokenEndpointGiven: true }),
  authorizationEndpoint: `${origin}/authorize`,
  registrationEndpoint: `${origin}/register`,
  pkceS256: true,
  legacy: true,
})

export const serverFromTokenEndpoint = (listed: string, tokenEndpoint: string): ServerInfo => ({
  ...withoutMetadata(listed, tokenEndpoint),
  tokenEndpointGiven: true,
})

function throwPkceUnsupported({ issuer, metadataUrl }: ServerInfo): never {
  throw new AuthError(
    `${printableUrl(issuer)} does not declare support for PKCE in ${printableUrl(metadataUrl ?? issuer)}`,
    {
      code: 'pkce_unsupported',
      fix: {
        text: 'its operator must list S256 in `code_challenge_methods_supported`; if the server is known to support PKCE anyway,',
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
  function read(members: Members, url: string): ServerInfo {
    const server = readServer(ctx, members, { listed, legacy, tokenEndpoint }, url)
    return server.pkceS256 || !isCodeGrant(ctx) ? server : throwPkceUnsupported(server)
  }
  // Continues after a document of another issuer, because proxies answer unknown paths with any document. Each document must
  // name `listed`, so no other issuer's endpoint is used.
  const { found, failure } = await findDocument(ctx, { label: SERVER_METADATA, urls }, read, signal)
  if (found) return found
  if (failure !== undefined) throw failure
  if (legacy) return defaultEndpoints(listed, tokenEndpoint)
  if (tokenEndpoint !== undefined && !isCodeGrant(ctx)) return serverFromTokenEndpoint(listed, tokenEndpoint)
  throw invalidServer(
    `${printableUrl(listed)} publishes no authorization server metadata`,
    `its operator must publish it at ${urls[0]}; or the resource lists a wrong address`,
  )
}

/** Throws an AuthError `no_authorization_server` without a choice, or `invalid_options` for an unlisted server. */
export async function selectServer(ctx: ClientContext, resource: ResourceInfo): Promise<string> {
  const { authServerSelector } = ctx.options
  const listed = resource.authorizationServers
  const [first] = listed
  const selected = authServerSelector ? await authServerSelector([...listed]) : first
  if (selected === null || selected === undefined) {
    throw new AuthError(`authServerSelector selected none of ${listed.map(url => printableUrl(url)).join(', ')}`, {
      code: 'no_authorization_server',
      fix: 'return one of the listed URLs',
    })
  }
  if (!listed.includes(selected)) {
    throw new AuthError(`authServerSelector selected the unlisted "${printableUrl(String(selected))}"`, {
      code: 'invalid_options',
      fix: `return one of: ${listed.map(url => printableUrl(url)).join(', ')}, exactly as listed`,
    })
  }
  const details = { issuer: printableUrl(selected), listed: listed.map(url => printableUrl(url)) }
  if (!authServerSelector && listed.length > 1) ctx.emit('several-authorization-servers', details)
  ctx.emit('authorization-server-selected', details)
  return selected
}

const MAX_AGE = 3_600_000

export interface Authority {
  readonly info: ResourceInfo
  readonly server: ServerInfo
  /** The `resource` parameter of every request (RFC 8707); omitted if undefined. */
  readonly resource: string | undefined
}

const defaultInfo = (issuer: string, legacy: boolean): ResourceInfo => ({
  resource: undefined,
  authorizationServers: [issuer],
  scopesSupported: undefined,
  metadataUrl: undefined,
  dpopRequired: false,
  legacy,
})

export function createAuthorityFinder(ctx: ClientContext) {
  const { options, emit, now } = ctx
  let cached: { readonly authority: Authority; readonly at: number } | undefined

  function selectResource(info: ResourceInfo): string | undefined {
    if (options.resourceIndicator === 'auto') return info.resource
    return options.resourceIndicator === 'omit' ? undefined : options.resourceIndicator
  }

  async function find(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority> {
    const info =
      ctx.issuer === undefined ? await discoverResource(ctx, metadataUrls, signal) : defaultInfo(ctx.issuer, false)
    emit('resource-metadata-found', {
      url: printableUrl(info.metadataUrl ?? options.serverUrl),
      resource: info.resource,
    })
    const listed = await selectServer(ctx, info)
    const server = await discoverServer(ctx, listed, info.legacy, signal, options.tokenEndpoint)
    emit('authorization-server-found', { issuer: server.issuer, url: server.metadataUrl })
    const authority = { info, server, resource: selectResource(info) }
    cached = { authority, at: now() }
    return authority
  }

  return {
    find,
    findCached(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority> {
      if (cached && now() - cached.at < MAX_AGE) return Promise.resolve(cached.authority)
      return find(metadataUrls, signal)
    },
  }
}
