// Runs the authenticators of a route in the order of the config, and keeps the users of different plugins apart.
import { isAbsolute, parse } from 'node:path'
import compose from 'koa-compose'
import { attributeError } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import type { HostContext, HostMiddleware } from './endpoint.ts'
import type { PluginInstance } from './plugin-plan.ts'
import type { Route } from './route.ts'
import type { User } from './user.ts'

/** Issuer of users without an issuer of their own, followed by a name of their plugin. */
const PLUGIN_ISSUER = 'urn:mcp-host:plugin:'

export interface Authenticator {
  readonly middleware: HostMiddleware
  /** The challenge for the plugin's credentials, such as `ApiKey realm="acme"`. Undefined: bearer tokens. */
  readonly challenge?: string | undefined
  /** Also runs after another plugin has set the user, like hooks that use the deprecated name `identify`. */
  readonly always?: boolean | undefined
}

interface RouteAuthenticator extends Authenticator {
  readonly plugin: string
  readonly issuer: string
}

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

const nameOf = (key: string) => (key.startsWith('.') || isAbsolute(key) ? parse(key).name : key)

/** The issuer of a plugin's users. `keys`: the config keys of all plugins. File names that are not unique keep their folder. */
export function pluginIssuer(key: string, keys: Iterable<string>): string {
  const isUnique = [...new Set(keys)].every(other => other === key || nameOf(other) !== nameOf(key))
  return `${PLUGIN_ISSUER}${encodeURIComponent(isUnique ? nameOf(key) : key)}`
}

const MEMBERS = ['subject', 'subjectClaim', 'clientId', 'scopes', 'roles', 'claims', 'expiresAt'] as const

/** A copy, because plugins can reuse and change the object. Reads the members by name: they can be getters of a class. */
function copyWithIssuer(user: User, issuer: string): User {
  const members = MEMBERS.filter(name => user[name] !== undefined).map(name => [name, user[name]])
  return { ...user, ...Object.fromEntries(members), issuer }
}

/** True while user and copy are unchanged. The copy is reused, because other plugins cache by this object. */
const isCopyOf = (copy: User | undefined, user: User): copy is User =>
  copy !== undefined &&
  [...MEMBERS, ...Object.keys(user)].every(
    name => name === 'issuer' || Reflect.get(copy, name) === Reflect.get(user, name),
  )

/**
 * A user without an issuer gets that of the plugin. Throws `unauthorized` for an issuer of another plugin, except the issuer of
 * the user that was set before the plugin ran.
 */
export function createIssuerAssigner(plugin: string, ownIssuer: string): (user: User, previousIssuer?: string) => User {
  const copies = new WeakMap<User, User>()
  return (user, previousIssuer) => {
    const { issuer } = user
    if (issuer === undefined || issuer === '') {
      const known = copies.get(user)
      if (isCopyOf(known, user)) return known
      const copy = copyWithIssuer(user, ownIssuer)
      copies.set(user, copy)
      return copy
    }
    if (!issuer.startsWith(PLUGIN_ISSUER) || issuer === ownIssuer || issuer === previousIssuer) return user
    const error = new HostError('unauthorized', { detail: 'the credentials name the issuer of another plugin' })
    attributeError(error, plugin)
    throw error
  }
}

const hasChallenge = ({ headers = {} }: HostError) =>
  Object.keys(headers).some(name => name.toLowerCase() === 'www-authenticate')

function addMissingChallenge(error: unknown, ctx: HostContext, addChallenge: AddChallenge): unknown {
  if (!HostError.is(error) || error.kind !== 'unauthorized' || hasChallenge(error)) return error
  return addChallenge(error, ctx)
}

function withChallenge(middleware: HostMiddleware, addChallenge: AddChallenge): HostMiddleware {
  return async (ctx, next) => {
    let hasPassed = false
    try {
      await middleware(ctx, () => {
        hasPassed = true
        return next()
      })
    } catch (error) {
      throw hasPassed ? error : addMissingChallenge(error, ctx, addChallenge)
    }
  }
}

function withIssuerCheck(
  { plugin, issuer, middleware }: RouteAuthenticator,
  addChallenge: AddChallenge,
): HostMiddleware {
  const assignIssuer = createIssuerAssigner(plugin, issuer)
  return (ctx, next) => {
    const previousIssuer = ctx.state.user?.issuer
    return middleware(ctx, () => {
      try {
        const { user } = ctx.state
        if (user) ctx.state.user = assignIssuer(user, previousIssuer)
      } catch (error) {
        return Promise.reject(addMissingChallenge(error, ctx, addChallenge))
      }
      return next()
    })
  }
}

export type AddChallenge = (error: HostError, ctx: HostContext) => HostError

const composeSteps = (steps: readonly HostMiddleware[]) =>
  compose<HostContext>(steps as compose.Middleware<HostContext>[]) as HostMiddleware

/** Returns the authenticators of one plugin. If another plugin has set a user, only those with `always` run. */
function stepsOf(group: readonly RouteAuthenticator[], addChallenge: AddChallenge, isFirst: boolean): HostMiddleware[] {
  const stepOf = (one: RouteAuthenticator) => {
    const step = withIssuerCheck(one, addChallenge)
    return one.challenge === undefined ? step : withChallenge(step, addChallenge)
  }
  const steps = group.map(stepOf)
  if (isFirst) return steps
  const all = composeSteps(steps)
  const always = composeSteps(steps.filter((_, index) => group[index]?.always))
  return [(ctx, next) => (ctx.state.user ? always : all)(ctx, next)]
}

/** The first plugin that sets a user ends the step; without a user, credentials that none recognises are refused. */
export function authenticationSteps(
  authenticators: readonly RouteAuthenticator[],
  addChallenge: AddChallenge,
): HostMiddleware[] {
  if (authenticators.length === 0) return []
  const plugins = [...new Set(authenticators.map(({ plugin }) => plugin))]
  const refuseUnrecognised: HostMiddleware = (ctx, next) => {
    const { user, unrecognised } = ctx.state
    if (!user && unrecognised) throw unrecognised()
    return next()
  }
  const groups = plugins.map(name => authenticators.filter(({ plugin }) => plugin === name))
  return [...groups.flatMap((group, index) => stepsOf(group, addChallenge, index === 0)), refuseUnrecognised]
}
