// A route's own `authorize`: who does not meet it goes no further. Asked by the plugin that identifies callers, as
// middleware of `admit`; and by the services themselves, of callers whom no HTTP request brought through that.

import { blame } from '../http/describe-thrown.ts'
import type { HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import type { AdmitCaller } from '../mcp/call.ts'
import { refuseAccess } from './access.ts'

/** What throws `unauthorized` without a user, `forbidden` for one who does not meet the rule of the route. */
export function createRouteAdmission({ log }: Pick<KernelHost, 'log'>, services: AccessServices): AdmitCaller {
  return ({ route, user, params }) => {
    if (route.authorize === undefined) return
    const access = services.slot('access', route)
    const denial = access.authorize(route.authorize, user, route)
    if (!denial) return
    const { issuer, subject } = user ?? {}
    const { reason, scopes } = denial
    const by = access.by ?? 'mcp-host'
    log.info({ denied: 'route', by, route: route.path, issuer, subject, reason, scopes }, 'denied a route')
    const resource = services.slot('protectedResource', route)
    const refusal = refuseAccess(denial, user, {
      route,
      params,
      resource,
      binding: services.slot('tokenBinding', route),
      leastScopes: services.leastScopes(route, params),
    })
    blame(refusal, access.by)
    throw refusal
  }
}

/** Middleware for `admit`. Throws `unauthorized` without a user, `forbidden` for one who does not meet the rule. */
export function authorizeRoute(host: Pick<KernelHost, 'log'>, services: AccessServices): HostMiddleware {
  const admit = createRouteAdmission(host, services)
  return (ctx, next) => {
    const { route, user, params } = ctx.state
    if (route?.authorize !== undefined) admit({ route, user, params })
    return next()
  }
}
