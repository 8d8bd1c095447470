// Runs the authenticators of a route in the order of the config, and keeps the users of different plugins apart.
import { isAbsolute, parse } from 'node:path'
import compose from 'koa-compose'
import { HostError } from '../http/errors.ts'
import type { HostContext, HostMiddleware } from './endpoint.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

/** Issuer of users without an issuer of their own, followed by a name of their plugin. */
const PLUGIN_ISSUER = 'urn:mcp-host:plugin:'

export interface Authenticator {
  readonly middleware: HostMiddleware
  /** The challenge for its credentials, such as `ApiKey realm="acme"`. Undefined: bearer tokens. */
  readonly challenge?: string | undefined
}

export interface RouteAuthenticator extends Authenticator {
  readonly plugin: string
  /** The issuer of its users without one. */
  readonly issuer: string
}

/** The authenticators of a route, in the order of the config's `plugins`. */
export const authenticatorsOn = (
  {
    authenticators,
  }: { readonly authenticators: ReadonlyArray<{ readonly instance: PluginInstance; readonly value: Authenticator }> },
  route: Route,
): RouteAuthenticator[] =>
  authenticators
    .filter(({ instance }) => instance.routes.includes(route))
    .sort((one, other) => one.instance.order - other.instance.order)
    .map(({ instance, value }) => ({ ...value, plugin: instance.name, issuer: instance.issuer }))

/** A file without folder and extension, else the key itself. */
const nameOf = (key: string) => (key.startsWith('.') || isAbsolute(key) ? parse(key).name : key)

/** The issuer of a plugin's users. `keys`: the config keys of all plugins. File names that are not unique keep their folder. */
export function pluginIssuer(key: string, keys: Iterable<string>): string {
  const isUnique = [...new Set(keys)].every(other => other === key || nameOf(other) !== nameOf(key))
  return `${PLUGIN_ISSUER}${encodeURIComponent(isUnique ? nameOf(key) : key)}`
}

/** A user without an issuer gets `own`, that of the plugin. Throws `unauthorized` for an issuer of another plugin. */
export function createOwner(own: string): (user: User) => User {
  // The same object for the same user, which makes comparisons fast.
  const known = new WeakMap<User, User>()
  return user => {
    const { issuer } = user
    if (issuer === undefined || issuer === '') {
      const owned = known.get(user) ?? { ...user, issuer: own }
      known.set(user, owned)
      return owned
    }
    if (!issuer.startsWith(PLUGIN_ISSUER) || issuer === own) return user
    throw new HostError('unauthorized', { detail: 'the credentials name the issuer of another plugin' })
  }
}

/** `complete`: adds challenges to a 401 without one. */
function completing(middleware: HostMiddleware, complete: CompleteRefusal): HostMiddleware {
  return async (ctx, next) => {
    let hasPassed = false
    try {
      await middleware(ctx, () => {
        hasPassed = true
        return next()
      })
    } catch (error) {
      const isOwn = !hasPassed && HostError.is(error) && error.kind === 'unauthorized'
      throw isOwn && error.headers?.['WWW-Authenticate'] === undefined ? complete(error, ctx) : error
    }
  }
}

export type CompleteRefusal = (error: HostError, ctx: HostContext) => HostError

/** The first authenticator that sets a user ends the step; without a user, credentials that none recognises are refused. */
export function authenticationSteps(
  authenticators: readonly RouteAuthenticator[],
  complete: CompleteRefusal,
): HostMiddleware[] {
  return authenticators.flatMap(({ issuer, middleware, challenge }, index) => {
    const own = createOwner(issuer)
    const isLast = index === authenticators.length - 1
    const settle: HostMiddleware = (ctx, next) => {
      const { user, unrecognised } = ctx.state
      if (user) ctx.state.user = own(user)
      else if (isLast && unrecognised) throw unrecognised()
      return next()
    }
    const steps = [challenge === undefined ? middleware : completing(middleware, complete), settle]
    if (index === 0) return steps
    const run = compose<HostContext>(steps as compose.Middleware<HostContext>[]) as HostMiddleware
    return [(ctx, next) => (ctx.state.user ? next() : run(ctx, next))]
  })
}
