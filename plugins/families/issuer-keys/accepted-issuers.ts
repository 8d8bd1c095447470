// The issuers whose tokens plugins verify by keys, so that no other server can name users of these issuers.
import type { InternalHost } from '../../../core/internal.ts'
import type { Route } from '../../../core/plugin.ts'

type Accepts = (route: Route, issuer: string) => boolean

const ACCEPTED = Symbol('accepted issuers')

const acceptedIn = (host: Pick<InternalHost, 'share'>) => host.share(ACCEPTED, (): Accepts[] => [])

export function announceIssuers(host: Pick<InternalHost, 'routes' | 'share'>, issuers: ReadonlyMap<string, unknown>) {
  const routes: ReadonlySet<Route> = new Set(host.routes)
  acceptedIn(host).push((route, issuer) => routes.has(route) && issuers.has(issuer))
}

/** True for issuers of the route's `auth-jwt`, and for the authorization server of this host. Call it in `setup`. */
export function createIssuerCheck(host: Pick<InternalHost, 'services' | 'share'>): Accepts {
  const accepted = acceptedIn(host)
  return (route, issuer) =>
    host.services.slot('authorizationServer', route).issuer() === issuer ||
    accepted.some(accepts => accepts(route, issuer))
}
