// Where documents are: the paths that this host serves, and the URLs that challenges tell (RFC 9728 section 3).
import type { ResolvedHttp, Route } from '../../core/index.ts'

export const WELL_KNOWN = '/.well-known/oauth-protected-resource'

type Params = Readonly<Record<string, string>>

/** The path without a slash at its end; the root is empty. */
const plain = (path: string) => path.replace(/\/+$/, '')

/** The path of `http.publicUrl`, which a proxy takes off; empty where there is none. */
const prefixOf = ({ publicUrl }: ResolvedHttp) => (publicUrl === undefined ? '' : plain(new URL(publicUrl).pathname))

/** What every URL of this host begins with; empty while neither `publicUrl` nor the address is known. */
const baseOf = ({ publicUrl }: ResolvedHttp, route: Route) =>
  publicUrl?.replace(/\/$/, '') ?? /^https?:\/\/[^/]+/.exec(route.url())?.[0] ?? ''

/** The paths of a route's document: the first is the one that challenges tell. */
export function documentPaths({ path }: Route, http: ResolvedHttp): readonly [string, ...string[]] {
  const own = `${WELL_KNOWN}${plain(path)}`
  const prefix = prefixOf(http)
  // The RFC puts the document of https://host/prefix/route at the host's root, where a proxy may pass it to us as it is.
  return prefix === '' ? [own] : [own, `${WELL_KNOWN}${prefix}${plain(path)}`]
}

/** The URL of the document at an address. */
export function documentUrl(route: Route, params: Params, http: ResolvedHttp): string {
  const base = baseOf(http, route)
  return `${base}${WELL_KNOWN}${plain(route.url(params).slice(base.length))}`
}

/** The paths at which clients look that know nothing but the resource's identifier, or the host. */
export function resourcePaths(resource: string): string[] {
  return [WELL_KNOWN, `${WELL_KNOWN}${plain(new URL(resource).pathname)}`]
}

export interface OnlyDocument {
  /** Undefined where the URL is not of this host: somebody else serves it. */
  readonly path: string | undefined
  url(route: Route): string
}

/** The one document that `resourceMetadataUri` names: a path of this host, or a URL. */
export function onlyDocument(uri: string, http: ResolvedHttp): OnlyDocument {
  if (!URL.canParse(uri)) {
    const path = new URL(uri, 'http://host/').pathname
    return { path, url: route => `${baseOf(http, route)}${path}` }
  }
  const { origin, pathname, href } = new URL(uri)
  const ours = http.publicUrl === undefined || origin === new URL(http.publicUrl).origin
  const prefix = prefixOf(http)
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname
  return { path: ours ? path : undefined, url: () => href }
}
