// The config's routes, compiled: which toolsets an address serves, and what its URL is. Which endpoint a request's path
// names is the path table's (path-table.ts); where routes' paths meet, the narrowest has the address (route-places.ts).

import { StartError } from '../http/errors.ts'
import { fill, PARAMETER, type Pattern, parsePattern } from '../http/path-pattern.ts'
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import { placeRoutes, type RoutePlaces } from '../kernel/route-places.ts'
import type { Revision } from './revisions.ts'

/** A route, and what MCP serves there. */
export interface McpRoute extends Route {
  readonly stateless: boolean
  /** Whether `subscriptions/listen` is served. */
  readonly listen: boolean
  /** Every toolset that the route can serve. */
  readonly toolsets: readonly string[]
  /** The protocol revisions that its transports serve, newest first; complete once every plugin is set up. */
  readonly revisions: readonly Revision[]
}

export interface CompiledRoute extends McpRoute {
  /** Serves from now on what `other`, the same path of a newer config, was compiled to serve. */
  serveAs(other: CompiledRoute): void
  /** What `serveAs` takes: reads what it serves now. */
  readonly choice: ToolsetChoice
  /** The toolsets at this address; undefined where the parameter names none, and where a narrower route has it. */
  toolsetsFor(params: Readonly<Record<string, string>>): readonly string[] | undefined
  /** Every combination of toolsets that an address of this route can have. */
  knownCombinations(): ReadonlyArray<readonly string[]>
}

/** Splits a route's path. Throws a StartError for what a route cannot have. */
function parsePath(path: string): Pattern {
  const where = `routes['${path}']`
  const parts = parsePattern(path, where)
  if (parts.some(({ optional }, index) => optional && index < parts.length - 1)) {
    throw new StartError(`${where}: only the last parameter may be optional`, { exitCode: 2 })
  }
  return parts
}

/** What the config says of its routes. */
export interface RoutesConfig {
  readonly stateless?: boolean
  readonly toolsets: Readonly<Record<string, unknown>>
  readonly routes: Readonly<
    Record<
      string,
      {
        readonly toolsets: string | readonly string[]
        readonly default?: readonly string[]
        readonly stateless?: boolean
        readonly listen?: boolean
        readonly authorize?: AuthorizeRule
        readonly challengeScope?: string | readonly string[]
        readonly cors?: string
      }
    >
  >
}

/** Which toolsets a route serves at which of its addresses. */
export interface ToolsetChoice {
  readonly all: readonly string[]
  choose(params: Readonly<Record<string, string>>): readonly string[] | undefined
  readonly combinations: ReadonlyArray<readonly string[]>
}

function chooseToolsets(path: string, config: RoutesConfig, pattern: Pattern, places: RoutePlaces): ToolsetChoice {
  const settings = config.routes[path] ?? { toolsets: [] }
  const listed = [settings.toolsets].flat()
  const [first = ''] = listed
  const [, parameter] = PARAMETER.exec(first) ?? []
  if (parameter === undefined) return { all: listed, choose: () => listed, combinations: [listed] }
  if (listed.length > 1 || !pattern.some(part => part.parameter === parameter)) {
    const why = listed.length > 1 ? `"${first}" stands alone` : `the path has no parameter ":${parameter}"`
    throw new StartError(`routes['${path}'].toolsets: ${why}`, { exitCode: 2 })
  }
  const names = Object.keys(config.toolsets).filter(name => !places.isWhollyTaken(path, { [parameter]: name }))
  const sets = new Map(names.map(name => [name, [name] as readonly string[]]))
  const fallback = settings.default && !places.isTaken(path, {}) ? settings.default : undefined
  return {
    all: [...new Set([...names, ...(fallback ?? [])])],
    choose(params) {
      const name = params[parameter]
      return name === undefined ? fallback : sets.get(name)
    },
    combinations: [...sets.values(), ...(fallback ? [fallback] : [])],
  }
}

function checkToolsets(path: string, names: readonly string[], config: RoutesConfig) {
  for (const name of names) {
    if (!Object.hasOwn(config.toolsets, name)) {
      const known = Object.keys(config.toolsets).join(', ')
      throw new StartError(`routes['${path}']: there is no toolset "${name}"; there are: ${known}`, { exitCode: 2 })
    }
  }
}

/** What a route learns later than its path: the host's address, and what its transports serve. */
export interface LateFacts {
  readonly address: () => string
  readonly revisions: (route: CompiledRoute) => readonly Revision[]
}

/** Compiles the config's routes. Throws a StartError for a path or a toolset that makes no sense. */
export function compileRoutes(config: RoutesConfig, late: LateFacts): CompiledRoute[] {
  const patterns = new Map(Object.keys(config.routes).map(path => [path, parsePath(path)]))
  const places = placeRoutes(patterns)
  return Object.entries(config.routes).map(([path, settings]) => {
    const pattern = patterns.get(path) ?? []
    let choice = chooseToolsets(path, config, pattern, places)
    checkToolsets(path, [...choice.all, ...(settings.default ?? [])], config)
    const route: CompiledRoute = {
      path,
      stateless: settings.stateless ?? config.stateless ?? false,
      listen: settings.listen ?? !(settings.stateless ?? config.stateless ?? false),
      authorize: settings.authorize,
      challengeScopes: [settings.challengeScope ?? []].flat(),
      cors: settings.cors,
      get toolsets() {
        return choice.all
      },
      get choice() {
        return choice
      },
      serveAs(other) {
        choice = other.choice
      },
      get revisions() {
        return late.revisions(route)
      },
      toolsetsFor: params => (places.isTaken(path, params) ? undefined : choice.choose(params)),
      serves: params => route.toolsetsFor(params) !== undefined,
      knownCombinations: () => choice.combinations,
      url(params: Readonly<Record<string, string>> = {}) {
        const filled = fill(pattern, params).filter(({ parameter }) => parameter === undefined)
        // Canonical, as clients write it: the root is its host, without a slash at its end.
        return [late.address(), ...filled.map(({ text }) => text)].join('/')
      },
    }
    return route
  })
}

/** An address of the route that serves something: a parameter that it needs has the name of a toolset. */
export function sampleUrl(route: CompiledRoute): string {
  const servesWithout = route.toolsetsFor({}) !== undefined
  const names = [...route.path.matchAll(/:(\w+)(\?)?/g)].filter(([, , optional]) => !optional || !servesWithout)
  return route.url(Object.fromEntries(names.map(([, name = '']) => [name, route.toolsets[0] ?? name])))
}
