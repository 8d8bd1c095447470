// Resources with tokens issued by this host (RFC 8707), and their scopes.
import type { InternalHost, Services } from '../../../core/internal.ts'

type Route = InternalHost['routes'][number]
type Params = Readonly<Record<string, string>>

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

export type Resources = ReturnType<typeof createResources>

/** Removes the final slash, because clients send `/mcp` or `/mcp/`. */
const withoutSlash = (resource: string) => resource.replace(/^(https?:\/\/[^?#]*[^/?#])\/$/i, '$1')

const isSame = (one: string, other: string) => withoutSlash(one) === withoutSlash(other)

export const withFixed = (resources: Resources, fixed: readonly string[] | undefined): Resources =>
  fixed
    ? {
        ...resources,
        find: resource => fixed.find(one => isSame(one, resource)),
        only: fixed.length === 1 ? fixed[0] : undefined,
      }
    : resources

export function createResources(
  host: Pick<InternalHost, 'routes' | 'url'>,
  services: Services,
  restricted: readonly string[],
) {
  const resourceOf = (route: Route, params: Params) =>
    services.slot('protectedResource', route).resourceOf(route, params)
  /** A proxy can remove a path prefix. */
  const base = new URL(host.url('/')).pathname.replace(/\/$/, '')

  function findIn(route: Route, resource: string): string | undefined {
    const at = (params: Params) => {
      const own = resourceOf(route, params)
      return isSame(own, resource) && route.toolsetsFor(params) ? own : undefined
    }
    if (!route.path.includes(':')) return at({})
    if (!URL.canParse(resource)) return undefined
    const { pathname } = new URL(resource)
    const params = pathname.startsWith(base) ? paramsAt(route, pathname.slice(base.length)) : undefined
    // A configured resource applies to all URLs of the route.
    return at(params ?? {})
  }

  const fixed = host.routes.filter(({ path }) => !path.includes(':')).map(route => resourceOf(route, {}))
  const all = new Set(fixed)
  const isOne = all.size === 1 && fixed.length === host.routes.length
  const promised = host.routes.flatMap(route => services.slot('protectedResource', route).scopesOf(route) ?? [])
  return {
    /** Returns the canonical resource, used as audience; undefined if unknown. */
    find(resource: string): string | undefined {
      for (const route of host.routes) {
        const found = findIn(route, resource)
        if (found !== undefined) return found
      }
      return undefined
    },
    only: isOne ? fixed[0] : undefined,
    scopes: [...new Set([...promised, ...restricted])],
    // A grant needs a scope, so this scope without rights is added.
    defaultScope: [...new Set(promised)].filter(scope => !restricted.includes(scope)).join(' ') || 'openid',
  }
}
