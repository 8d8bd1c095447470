// What our tokens are for: the addresses of the plugin's routes (RFC 8707), and the scopes that mean something there.
import { sameResources } from '../../../core/auth.ts'
import type { PluginHost, Services } from '../../../core/index.ts'

type Host = Pick<PluginHost, 'routes' | 'url'>
type Route = PluginHost['routes'][number]
type Params = Readonly<Record<string, string>>

/** The parameters that make a route's path this one; undefined where none do. */
function paramsAt(route: Route, pathname: string): Params | undefined {
  const pattern = route.path.split('/').filter(Boolean)
  const given = pathname.split('/').filter(Boolean)
  const params: Record<string, string> = {}
  if (given.length > pattern.length) return undefined
  for (const [index, part] of pattern.entries()) {
    const [, name, optional] = /^:([A-Za-z_]\w*)(\?)?$/.exec(part) ?? []
    const text = given[index]
    if (text === undefined) {
      if (optional === undefined) return undefined
    } else if (name === undefined) {
      if (part !== text) return undefined
    } else {
      params[name] = text
    }
  }
  return params
}

export interface Resources {
  /** Whether tokens may be for this: the resource of an address that a route serves. */
  has(resource: string): boolean
  /** What a client that names none means, where there is but one; undefined: it must say. */
  readonly only: string | undefined
  /** The scopes that routes promise in their metadata, and those that the config gives to some only. */
  readonly scopes: readonly string[]
  /** What a client that names no scope is given: all that everybody may have (RFC 6749 3.3). Not empty. */
  readonly defaultScope: string
}

export function createResources(host: Host, services: Services, restricted: readonly string[]): Resources {
  const resourceOf = (route: Route, params: Params) =>
    services.slot('protectedResource', route).resourceOf(route, params)
  /** Behind a proxy that takes a path off, that path comes before each route's. */
  const base = new URL(host.url('/')).pathname.replace(/\/$/, '')

  function isOf(route: Route, resource: string): boolean {
    // One that the config names for all addresses alike.
    const same = (params: Params) => sameResources(resourceOf(route, params)).includes(resource)
    if (!route.path.includes(':')) return same({})
    if (!URL.canParse(resource)) return false
    const { pathname } = new URL(resource)
    const params = pathname.startsWith(base) ? paramsAt(route, pathname.slice(base.length)) : undefined
    return params === undefined ? same({}) && route.serves({}) : route.serves(params) && same(params)
  }

  const fixed = host.routes.filter(({ path }) => !path.includes(':')).map(route => resourceOf(route, {}))
  const all = new Set(fixed)
  const isOne = all.size === 1 && fixed.length === host.routes.length
  const promised = host.routes.flatMap(route => services.slot('protectedResource', route).scopesOf(route) ?? [])
  return {
    has: resource => host.routes.some(route => isOf(route, resource)),
    only: isOne ? fixed[0] : undefined,
    scopes: [...new Set([...promised, ...restricted])],
    // Without a scope nothing could be granted; this one is no right of anybody's.
    defaultScope: [...new Set(promised)].filter(scope => !restricted.includes(scope)).join(' ') || 'openid',
  }
}
