// URLs of metadata documents (RFC 9728 section 3), and their members about DPoP (RFC 9449 section 5.1).
import type { TokenBinding } from '../../core/auth.ts'
import type { InternalHost, ResolvedHttp } from '../../core/internal.ts'
import { type Route, StartError } from '../../core/plugin.ts'
import type { FilledResourceMetadata } from './options.ts'

export const WELL_KNOWN = '/.well-known/oauth-protected-resource'

const plain = (path: string) => path.replace(/\/+$/, '')

const prefixOf = ({ publicUrl }: ResolvedHttp) => (publicUrl === undefined ? '' : plain(new URL(publicUrl).pathname))

const baseOf = ({ publicUrl }: ResolvedHttp, route: Route) =>
  publicUrl?.replace(/\/$/, '') ?? /^https?:\/\/[^/]+/.exec(route.url())?.[0] ?? ''

/** Returns the document paths. The first one is the path in challenges. */
export function documentPaths({ path }: Route, http: ResolvedHttp): readonly [string, ...string[]] {
  const own = `${WELL_KNOWN}${plain(path)}`
  const prefix = prefixOf(http)
  // RFC 9728 puts the document of https://host/prefix/route at the root, where a proxy can pass it unchanged.
  return prefix === '' ? [own] : [own, `${WELL_KNOWN}${prefix}${plain(path)}`]
}

export function documentUrl(route: Route, params: Readonly<Record<string, string>>, http: ResolvedHttp): string {
  const base = baseOf(http, route)
  return `${base}${WELL_KNOWN}${plain(route.url(params).slice(base.length))}`
}

/** Returns paths for clients that know only the resource identifier or the host. */
export function resourcePaths(resource: string): string[] {
  return [WELL_KNOWN, `${WELL_KNOWN}${plain(new URL(resource).pathname)}`]
}

/** Returns the document of `resourceMetadataUri`. `path` is undefined for a URL of another host. */
export function onlyDocument(uri: string, http: ResolvedHttp) {
  if (!URL.canParse(uri)) {
    const path = new URL(uri, 'http://host/').pathname
    return { path, url: (route: Route) => `${baseOf(http, route)}${path}` }
  }
  const { origin, pathname, href } = new URL(uri)
  const ours = http.publicUrl === undefined || origin === new URL(http.publicUrl).origin
  const prefix = prefixOf(http)
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname
  return { path: ours ? path : undefined, url: () => href }
}

type DPoP = Pick<FilledResourceMetadata, 'dpopSigningAlgValuesSupported' | 'dpopBoundAccessTokensRequired'>

const namesOf = (routes: readonly Route[]) => routes.map(({ path }) => `routes['${path}']`).join(', ')

function checkDPoP(
  { config: { at }, log, report, routes }: InternalHost,
  dpop: DPoP,
  bindingOn: (route: Route) => TokenBinding,
) {
  const fail = (why: string, key: keyof DPoP) => report(new StartError('MH2040', why, { at: [...at, key] }))
  const { dpopBoundAccessTokensRequired: required, dpopSigningAlgValuesSupported: algorithms = [] } = dpop
  const otherwise = required === undefined ? [] : routes.filter(route => bindingOn(route).required() !== required)
  if (otherwise.length > 0) {
    const on = namesOf(otherwise)
    const why = required
      ? `no plugin requires proofs of possession (RFC 9449) on ${on}; set dpop: { mode: 'required' } of auth-jwt or ` +
        'auth-introspection there, and remove this option, which then has the right default'
      : `tokens that are not bound to a key are refused on ${on}; remove this option, which has the right default`
    fail(why, 'dpopBoundAccessTokensRequired')
  }
  const unknownOn = (route: Route) => algorithms.filter(one => !bindingOn(route).algorithms().includes(one))
  const where = routes.filter(route => unknownOn(route).length > 0)
  if (where.length === 0) return
  const facts = { dpopSigningAlgValuesSupported: [...new Set(where.flatMap(unknownOn))], routes: namesOf(where) }
  log.warn(
    { code: 'MH2042', ...facts },
    'dpopSigningAlgValuesSupported is published, but this host does not implement it',
  )
}

export function createDPoP(host: InternalHost, options: FilledResourceMetadata): (routes: readonly Route[]) => DPoP {
  const bindingOn = (route: Route): TokenBinding => host.services.slot('tokenBinding', route)
  host.onReady(() => checkDPoP(host, options, bindingOn))

  return routes => {
    const [first, ...others] = routes.map(bindingOn)
    if (!first || ![first, ...others].every(binding => binding.announced())) return {}
    const algorithms = first.algorithms().filter(one => others.every(other => other.algorithms().includes(one)))
    const required = [first, ...others].every(binding => binding.required())
    return {
      // An empty list is not allowed (RFC 9728 section 3.2).
      ...(algorithms.length > 0 && { dpopSigningAlgValuesSupported: algorithms }),
      ...(required && { dpopBoundAccessTokensRequired: true }),
    }
  }
}
