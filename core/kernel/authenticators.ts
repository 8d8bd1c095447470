// Runs the authenticators of a route in the order of the config, and keeps the users of different plugins apart.
import compose from 'koa-compose'
import { HostError } from '../http/errors.ts'
import type { HostContext, HostMiddleware } from './endpoint.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

/** Issuer of users without an issuer of their own, followed by the name of their plugin. */
const PLUGIN_ISSUER = 'urn:mcp-host:plugin:'

export interface Authenticator {
  readonly middleware: HostMiddleware
  /** The challenge for its credentials, such as `ApiKey realm="acme"`. Undefined: bearer tokens. */
  readonly challenge?: string | undefined
}

interface RouteAuthenticator extends Authenticator {
  readonly plugin: string
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
    .map(({ instance, value }) => ({ ...value, plugin: instance.name }))

/** A user without an issuer gets that of the plugin. Throws `unauthorized` for an issuer of another plugin. */
function createIssuerAssigner(plugin: string): (user: User) => User {
  const own = `${PLUGIN_ISSUER}${plugin}`
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

/** `addChallenge`: adds challenges to a 401 without one. */
function withChallenge(middleware: HostMiddleware, addChallenge: AddChallenge): HostMiddleware {
  return async (ctx, next) => {
    let hasPassed = false
    try {
      await middleware(ctx, () => {
        hasPassed = true
        return next()
      })
    } catch (error) {
      const isOwn = !hasPassed && HostError.is(error) && error.kind === 'unauthorized'
      throw isOwn && error.headers?.['WWW-Authenticate'] === undefined ? addChallenge(error, ctx) : error
    }
  }
}

export type AddChallenge = (error: HostError, ctx: HostContext) => HostError

/** The first authenticator that sets a user ends the step; without a user, credentials that none recognises are refused. */
export function authenticationSteps(
  authenticators: readonly RouteAuthenticator[],
  addChallenge: AddChallenge,
): HostMiddleware[] {
  return authenticators.flatMap(({ plugin, middleware, challenge }, index) => {
    const own = createIssuerAssigner(plugin)
    const isLast = index === authenticators.length - 1
    const assignIssuer: HostMiddleware = (ctx, next) => {
      const { user, unrecognised } = ctx.state
      if (user) ctx.state.user = own(user)
      else if (isLast && unrecognised) throw unrecognised()
      return next()
    }
    const steps = [challenge === undefined ? middleware : withChallenge(middleware, addChallenge), assignIssuer]
    if (index === 0) return steps
    const run = compose<HostContext>(steps as compose.Middleware<HostContext>[]) as HostMiddleware
    return [(ctx, next) => (ctx.state.user ? next() : run(ctx, next))]
  })
}
