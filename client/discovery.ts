// Discovers protected resource metadata (RFC 9728), and selects an authorization server.

import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import {
  discoverServer,
  findDocument,
  type Lookup,
  listOf,
  lookUp,
  type Members,
  type Search,
  textOf,
  unavailable,
} from './server-metadata.ts'
import { isScope, printableUrl } from './text.ts'

export { discoverServer } from './server-metadata.ts'

import type { ServerInfo } from './parties.ts'

const WHAT = 'The resource metadata'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

const MAX_NAMED = 5

export interface ResourceInfo {
  readonly resource: string | undefined
  readonly authorizationServers: readonly string[]
  readonly scopesSupported: readonly string[] | undefined
  readonly metadataUrl: string | undefined
  readonly dpopRequired: boolean
  /** No metadata document: the server is its own authorization server (2025-03-26). */
  readonly legacy: boolean
}

const invalid = (url: string, why: string, fix: string): AuthError =>
  new AuthError(`${WHAT} at ${printableUrl(url)} ${why}`, { code: 'invalid_resource_metadata', fix })

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

function speaksFor(resource: string, serverUrl: string, match: ClientContext['options']['resourceMatch']): boolean {
  if (!URL.canParse(resource) || resource.includes('#')) return false
  const named = new URL(resource)
  const server = new URL(serverUrl)
  if (named.username || named.password || named.origin === 'null' || named.origin !== server.origin) return false
  const [path, serverPath] = [withoutSlash(named.pathname), withoutSlash(server.pathname)]
  return path === '' || path === serverPath || (match === 'path-prefix' && serverPath.startsWith(`${path}/`))
}

function checkResource(ctx: ClientContext, members: Members, url: string): string {
  const { serverUrl, resourceMatch } = ctx.options
  const resource = textOf(members, 'resource')
  if (resource === undefined) {
    throw invalid(
      url,
      'has no `resource`',
      `its publisher must name the server there, such as ${printableUrl(serverUrl)}`,
    )
  }
  if (speaksFor(resource, serverUrl, resourceMatch)) return resource
  const isParent = speaksFor(resource, serverUrl, 'path-prefix')
  throw new AuthError(
    `${WHAT} at ${printableUrl(url)} is about ${printableUrl(resource)}, not about ${printableUrl(serverUrl)}`,
    {
      code: 'resource_mismatch',
      fix: isParent
        ? { text: 'if tokens for the parent path are meant,', option: 'resourceMatch', value: 'path-prefix' }
        : 'check serverUrl; if it is right, the publisher must correct `resource`: a token for it would be for somebody else',
    },
  )
}

function checkServers(members: Members, url: string): readonly string[] {
  const listed = members['authorization_servers']
  if (!Array.isArray(listed) || listed.length === 0) {
    throw invalid(url, 'lists no `authorization_servers`', 'its publisher must name at least one')
  }
  const wrong = listed.find(entry => typeof entry !== 'string' || !URL.canParse(entry))
  if (wrong === undefined) return listed as string[]
  const shown =
    typeof wrong === 'string' ? `"${printableUrl(wrong)}"` : `of type ${wrong === null ? 'null' : typeof wrong}`
  throw invalid(url, `lists the authorization server ${shown}`, 'its publisher must give absolute URLs')
}

function readDocument(ctx: ClientContext, members: Members, url: string): ResourceInfo {
  const scopes = listOf(members, 'scopes_supported')?.filter(isScope)
  return {
    resource: checkResource(ctx, members, url),
    authorizationServers: checkServers(members, url),
    scopesSupported: scopes?.length ? scopes : undefined,
    metadataUrl: url,
    dpopRequired: members['dpop_bound_access_tokens_required'] === true,
    legacy: false,
  }
}

/** Path-specific URL first, then the root (RFC 9728 §3.1). */
function wellKnownUrls(serverUrl: string): string[] {
  const { origin, pathname } = new URL(serverUrl)
  return [...new Set([`${origin}${WELL_KNOWN}${withoutSlash(pathname)}`, `${origin}${WELL_KNOWN}`])]
}

async function readNamed(ctx: ClientContext, url: string, signal: AbortSignal): Promise<ResourceInfo | undefined> {
  if (URL.canParse(url) && new URL(url).origin !== new URL(ctx.options.serverUrl).origin) {
    ctx.emit('resource-metadata-cross-origin', { url: printableUrl(url) })
  }
  const lookup = await lookUp(ctx, url, WHAT, signal)
  if (lookup.kind === 'found') return readDocument(ctx, lookup.members, url)
  if (lookup.kind === 'not-json') {
    throw invalid(
      url,
      'is no JSON object',
      'its publisher must serve the document at the address that its challenge names',
    )
  }
  return undefined
}

async function findWellKnown(
  ctx: ClientContext,
  unusable: readonly string[],
  signal: AbortSignal,
): Promise<Search<ResourceInfo>> {
  let busy: (Lookup & { readonly kind: 'absent' }) | undefined
  const urls = wellKnownUrls(ctx.options.serverUrl).filter(url => !unusable.includes(url))
  async function read(url: string): Promise<ResourceInfo | undefined> {
    const lookup = await lookUp(ctx, url, WHAT, signal)
    if (lookup.kind === 'found') return readDocument(ctx, lookup.members, url)
    if (lookup.kind === 'absent' && lookup.busy) busy = lookup
    return undefined
  }
  const search = await findDocument(urls, read, { signal, stopIfUnavailable: true })
  if (search.found === undefined && busy) throw unavailable(WHAT, urls[0] ?? '', busy.status)
  return search
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
  const named = metadataUrls.slice(0, MAX_NAMED)
  const read = (url: string) => readNamed(ctx, url, signal)
  const first = await findDocument(named, read, { signal, stopIfUnavailable: false })
  if (first.found) return first.found
  const { found, failure } = await findWellKnown(ctx, first.failure === undefined ? [] : named, signal)
  if (found) return found
  if (first.failure !== undefined || failure !== undefined) throw first.failure ?? failure
  const { serverUrl, legacyFallback } = ctx.options
  const { origin } = new URL(serverUrl)
  if (!legacyFallback) {
    throw new AuthError(`${printableUrl(serverUrl)} asks for authorization and publishes no resource metadata`, {
      code: 'no_authorization_server',
      fix: {
        text: `its operator must publish it at ${wellKnownUrls(serverUrl)[0]}, or`,
        option: 'legacyFallback',
        value: true,
      },
    })
  }
  return {
    resource: undefined,
    authorizationServers: [origin],
    scopesSupported: undefined,
    metadataUrl: undefined,
    dpopRequired: false,
    legacy: true,
  }
}

/** Throws an AuthError `no_authorization_server` without a choice, or `invalid_options` for an unlisted server. */
export async function selectServer(ctx: ClientContext, resource: ResourceInfo): Promise<string> {
  const { authServerSelector } = ctx.options
  const listed = resource.authorizationServers
  const [first] = listed
  const picked = authServerSelector ? await authServerSelector([...listed]) : first
  if (picked === null || picked === undefined) {
    throw new AuthError(`authServerSelector picked none of ${listed.map(url => printableUrl(url)).join(', ')}`, {
      code: 'no_authorization_server',
      fix: 'return one of the listed addresses',
    })
  }
  if (!listed.includes(picked)) {
    throw new AuthError(`authServerSelector picked "${printableUrl(String(picked))}", which the server does not list`, {
      code: 'invalid_options',
      fix: `return one of: ${listed.map(url => printableUrl(url)).join(', ')}, exactly as listed`,
    })
  }
  const about = { issuer: printableUrl(picked), listed: listed.map(url => printableUrl(url)) }
  if (!authServerSelector && listed.length > 1) ctx.emit('several-authorization-servers', about)
  ctx.emit('authorization-server-selected', about)
  return picked
}

const MAX_AGE = 3_600_000

export interface Authority {
  readonly info: ResourceInfo
  readonly server: ServerInfo
  /** The `resource` parameter of every request (RFC 8707); omitted if undefined. */
  readonly resource: string | undefined
}

export function createAuthorityFinder(ctx: ClientContext) {
  const { options, emit, now } = ctx
  let found: { readonly authority: Authority; readonly at: number } | undefined

  function resourceOf(info: ResourceInfo): string | undefined {
    if (options.resourceIndicator === 'auto') return info.resource
    return options.resourceIndicator === 'omit' ? undefined : options.resourceIndicator
  }

  async function find(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority> {
    const info = await discoverResource(ctx, metadataUrls, signal)
    emit('resource-metadata-found', {
      url: printableUrl(info.metadataUrl ?? options.serverUrl),
      resource: info.resource,
    })
    const listed = await selectServer(ctx, info)
    const server = await discoverServer(ctx, listed, info.legacy, signal, options.tokenEndpoint)
    emit('authorization-server-found', { issuer: server.issuer, url: server.metadataUrl })
    const authority = { info, server, resource: resourceOf(info) }
    found = { authority, at: now() }
    return authority
  }

  return {
    find,
    known(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority> {
      if (found && now() - found.at < MAX_AGE) return Promise.resolve(found.authority)
      return find(metadataUrls, signal)
    },
  }
}
