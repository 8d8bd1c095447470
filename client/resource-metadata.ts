// Protected resource metadata (RFC 9728): where it is, whether it speaks about this server, and what it says.
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import { isScope } from './json.ts'
import { type Lookup, listOf, lookUp, type Members, textOf, unavailable } from './metadata-document.ts'
import { printableUrl } from './printable.ts'

const WHAT = 'The resource metadata'
const WELL_KNOWN = '/.well-known/oauth-protected-resource'

/** Of one challenge, so many addresses are tried. */
const MAX_NAMED = 5

export interface ResourceInfo {
  /** The `resource` parameter, byte for byte; undefined for a server without metadata. */
  readonly resource: string | undefined
  /** As listed, at least one. */
  readonly authorizationServers: readonly string[]
  readonly scopesSupported: readonly string[] | undefined
  /** As it was asked for, before redirects. */
  readonly metadataUrl: string | undefined
  readonly dpopRequired: boolean
  /** True: no metadata document anywhere, so the server is its own authorization server (2025-03-26). */
  readonly legacy: boolean
}

const invalid = (url: string, why: string, fix: string): AuthError =>
  new AuthError(`${WHAT} at ${printableUrl(url)} ${why}`, { code: 'invalid_resource_metadata', fix })

const withoutSlash = (path: string): string => path.replace(/\/$/, '')

/** Whether `resource` is this server, its origin, or (`path-prefix`) a parent path of it. */
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
        ? "if tokens for the parent path are meant, set resourceMatch: 'path-prefix'"
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

/** At the path of the server, then at its root (RFC 9728 §3.1). */
function wellKnownUrls(serverUrl: string): string[] {
  const { origin, pathname } = new URL(serverUrl)
  return [...new Set([`${origin}${WELL_KNOWN}${withoutSlash(pathname)}`, `${origin}${WELL_KNOWN}`])]
}

/** An address that a challenge names; undefined where no document is there. */
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

/**
 * The first good document of those that a challenge names, else the first failure, unless each is plainly not there: then
 * undefined. One bad address among several (some servers send the parameter twice) does not spoil the others.
 */
async function findNamed(ctx: ClientContext, urls: readonly string[], signal: AbortSignal) {
  let failure: unknown
  for (const url of urls.slice(0, MAX_NAMED)) {
    try {
      const info = await readNamed(ctx, url, signal)
      if (info) return info
    } catch (thrown) {
      if (signal.aborted) throw thrown
      failure ??= thrown
    }
  }
  if (failure !== undefined) throw failure
  return undefined
}

/** The well-known places; a success that is no JSON object is some page for every path, not a document. */
async function findWellKnown(ctx: ClientContext, signal: AbortSignal): Promise<ResourceInfo | undefined> {
  let busy: (Lookup & { readonly kind: 'absent' }) | undefined
  const urls = wellKnownUrls(ctx.options.serverUrl)
  for (const url of urls) {
    const lookup = await lookUp(ctx, url, WHAT, signal)
    if (lookup.kind === 'found') return readDocument(ctx, lookup.members, url)
    if (lookup.kind === 'absent' && lookup.busy) busy = lookup
  }
  if (busy) throw unavailable(WHAT, urls[0] ?? '', busy.status)
  return undefined
}

/**
 * Finds the server's metadata: at the addresses that a challenge names, else at the well-known places (RFC 9728 §3, §5).
 * Without any, the server's origin is its own authorization server, if `legacyFallback`. Keeps nothing: every call asks.
 * Throws AuthErrors `invalid_resource_metadata`, `resource_mismatch`, `no_authorization_server`,
 * `temporarily_unavailable`, `malformed_response`, `insecure_endpoint` and `blocked_address`.
 */
export async function discoverResource(
  ctx: ClientContext,
  metadataUrls: readonly string[],
  signal: AbortSignal,
): Promise<ResourceInfo> {
  const found = (await findNamed(ctx, metadataUrls, signal)) ?? (await findWellKnown(ctx, signal))
  if (found) return found
  const { serverUrl, legacyFallback } = ctx.options
  const { origin } = new URL(serverUrl)
  if (!legacyFallback) {
    throw new AuthError(`${printableUrl(serverUrl)} asks for authorization and publishes no resource metadata`, {
      code: 'no_authorization_server',
      fix: `its operator must publish it at ${wellKnownUrls(serverUrl)[0]}, or set legacyFallback: true`,
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
