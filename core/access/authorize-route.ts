// A route's own `authorize`, for the plugin that identifies callers: who does not meet it goes no further.

import type { HostMiddleware } from '../kernel/endpoint.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import { refuseAccess } from './access.ts'

/** Middleware for `admit`. Throws `unauthorized` without a user, `forbidden` for one who does not meet the rule. */
export function authorizeRoute(host: Pick<KernelHost, 'log'>, services: AccessServices): HostMiddleware {
  return (ctx, next) => {
    const { route, user, params } = ctx.state
    if (route?.authorize !== undefined) {
      const denial = services.slot('access', route).authorize(route.authorize, user, route)
      if (denial) {
        const { issuer, subject } = user ?? {}
        const { reason, scopes } = denial
        host.log.info({ denied: 'route', route: route.path, issuer, subject, reason, scopes }, 'denied a route')
        const leastScopes = services.leastScopes(route, params)
        throw refuseAccess(denial, user, {
          route,
          params,
          resource: services.slot('protectedResource', route),
          leastScopes,
        })
      }
    }
    return next()
  }
}
