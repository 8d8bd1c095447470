// A route's own `authorize`, for the plugin that identifies callers: who does not meet it goes no further.

import type { HostMiddleware, PluginHost } from '../kernel/define-plugin.ts'
import { refuseAccess } from './access.ts'

/** Middleware for `admit`. Throws `unauthorized` without a user, `forbidden` for one who does not meet the rule. */
export function authorizeRoute(host: PluginHost): HostMiddleware {
  return (ctx, next) => {
    const { route, user, params } = ctx.state
    if (route?.authorize !== undefined) {
      const denial = host.slot('access').authorize(route.authorize, user, route)
      if (denial) {
        const { issuer, subject } = user ?? {}
        const { reason, scopes } = denial
        host.log.info({ denied: 'route', route: route.path, issuer, subject, reason, scopes }, 'denied a route')
        const leastScopes = host.leastScopes(route, params)
        throw refuseAccess(denial, user, { route, params, resource: host.slot('protectedResource'), leastScopes })
      }
    }
    return next()
  }
}
