// The config's routes, compiled: which toolsets an address serves, and what its URL is. Which endpoint a request's path
// names is the path table's (path-table.ts); where routes' paths meet, the narrowest has the address (route-places.ts).

import { type Path, type Report, reporting, StartError, stopAtFirst } from '../http/errors.ts'
import { fill, PARAMETER, type Pattern, parsePattern, placeRoutes, type RoutePlaces } from '../http/path-pattern.ts'
import type { AuthorizeRule, Route } from '../kernel/route.ts'
import { isObject } from './is-object.ts'
import { didYouMean } from './nearest.ts'
import type { Revision } from './revisions.ts'

/** A route, and what MCP serves there. */
export interface McpRoute extends Route {
  readonly stateless: boolean
  /** Whether `subscriptions/listen` is served. */
  readonly listen: boolean
  /** Every toolset that the route can serve. */
  readonly toolsets: readonly string[]
  /** Toolsets that the path parameter can name, if it selects the toolset. */
  readonly categories: readonly string[]
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
  const at = ['routes', path]
  const parts = parsePattern(path, { at })
  if (parts.some(({ optional }, index) => optional && index < parts.length - 1)) {
    throw new StartError('only the last parameter may be optional', { at })
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
        readonly toolsets: string | readonly string[] | ParameterChoice
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

/** A parameter of the path that names one of these toolsets. */
export interface ParameterChoice {
  readonly param: string
  readonly of: readonly string[]
}

/** Which toolsets a route serves at which of its addresses. */
export interface ToolsetChoice {
  readonly all: readonly string[]
  choose(params: Readonly<Record<string, string>>): readonly string[] | undefined
  readonly combinations: ReadonlyArray<readonly string[]>
  /** What the parameter may be. */
  readonly categories: readonly string[]
  /** Those of them that some route lists by name: documents and hints name no others. */
  readonly listed: readonly string[]
  /** True where the parameter can name toolsets that the route does not list. */
  readonly isOpen: boolean
  /** The parameter of the path that chooses; undefined where none does. */
  readonly parameter: string | undefined
}

/** A route while it is compiled. */
interface Subject {
  readonly path: string
  readonly config: RoutesConfig
  readonly pattern: Pattern
  readonly places: RoutePlaces
  readonly report: Report
}

function chooseToolsets({ path, config, pattern, places, report }: Subject): ToolsetChoice {
  const settings = config.routes[path] ?? { toolsets: [] }
  const at: Path = ['routes', path, 'toolsets']
  const own = isParameterChoice(settings.toolsets) ? settings.toolsets : undefined
  const listed = own ? [] : namesIn(settings.toolsets)
  const [first = ''] = listed
  const parameter = own?.param ?? PARAMETER.exec(first)?.[1]
  if (parameter === undefined) {
    if (settings.default) {
      const why = 'it needs `toolsets: { param, of }` and a path with that parameter, which is optional: "/:name?"'
      report(new StartError(why, { at: ['routes', path, 'default'] }))
    }
    const there = knownAmong(listed, place => placeIn(at, settings.toolsets, place), config, report)
    const fixed = { categories: [], listed: [], isOpen: false, parameter }
    return { all: there, choose: () => there, combinations: [there], ...fixed }
  }
  const part = pattern.find(part => part.parameter === parameter)
  if (listed.length > 1 || !part) {
    const why = listed.length > 1 ? `"${first}" stands alone` : `the path has no parameter ":${parameter}"`
    report(new StartError(why, { at: own ? [...at, 'param'] : at }))
  }
  if (settings.default && part && !part.optional) {
    const why = `the parameter is always there; make it optional: "${path}?"`
    report(new StartError(why, { at: ['routes', path, 'default'] }))
  }
  const candidates = own
    ? knownAmong(own.of, place => [...at, 'of', place], config, report)
    : Object.keys(config.toolsets).filter(name => !isInternal(config.toolsets[name]))
  const names = candidates.filter(name => !places.isWhollyTaken(path, { [parameter]: name }))
  const sets = new Map(names.map(name => [name, [name] as readonly string[]]))
  const standard =
    settings.default && knownAmong(settings.default, place => ['routes', path, 'default', place], config, report)
  const fallback = places.isTaken(path, {}) ? undefined : standard
  return {
    all: [...new Set([...names, ...(fallback ?? [])])],
    choose(params) {
      const name = params[parameter]
      return name === undefined ? fallback : sets.get(name)
    },
    combinations: [...sets.values(), ...(fallback ? [fallback] : [])],
    categories: names,
    listed: names.filter(name => isListed(config, name)),
    isOpen: own === undefined,
    parameter,
  }
}

const isParameterChoice = (toolsets: unknown): toolsets is ParameterChoice => isObject(toolsets)

/** Whether the config keeps a toolset from parameters that list none. */
export const isInternal = (toolset: unknown): boolean => isObject(toolset) && toolset['internal'] === true

const namesIn = (toolsets: string | readonly string[] | ParameterChoice): readonly string[] =>
  isParameterChoice(toolsets) ? toolsets.of : [toolsets].flat()

/** Whether a route names a toolset. */
const isListed = ({ routes }: RoutesConfig, toolset: string): boolean =>
  Object.values(routes).some(
    ({ toolsets, default: standard = [] }) => namesIn(toolsets).includes(toolset) || standard.includes(toolset),
  )

/** What is written at a place of a list, or is it where there is one alone. */
const placeIn = (at: Path, written: unknown, place: number): Path => (typeof written === 'string' ? at : [...at, place])

/** Those of a route's toolsets that there are; the others are reported. The very same list where all of them are. */
function knownAmong(
  names: readonly string[],
  at: (place: number) => Path,
  { toolsets }: RoutesConfig,
  report: Report,
): readonly string[] {
  const isKnown = (name: string) => Object.hasOwn(toolsets, name)
  for (const [place, name] of names.entries()) {
    if (isKnown(name)) continue
    const what = `there is no toolset "${name}"; ${didYouMean(name, Object.keys(toolsets))}`
    report(new StartError(what, { at: at(place) }))
  }
  return names.every(isKnown) ? names : names.filter(isKnown)
}

/** What a route learns later than its path: the host's address, and what its transports serve. */
export interface LateFacts {
  readonly address: () => string
  readonly revisions: (route: CompiledRoute) => readonly Revision[]
}

/** The patterns of all paths that can be one; the others are reported. */
function parsePaths(paths: readonly string[], report: Report): Map<string, Pattern> {
  const patterns = new Map<string, Pattern>()
  for (const path of paths) {
    const pattern = reporting(report, () => parsePath(path))
    if (pattern) patterns.set(path, pattern)
  }
  return patterns
}

/** Compiles the config's routes. Reports a path or a toolset that makes no sense, and leaves it out. */
export function compileRoutes(config: RoutesConfig, late: LateFacts, report = stopAtFirst): CompiledRoute[] {
  const patterns = parsePaths(Object.keys(config.routes), report)
  const places = placeRoutes(patterns, report)
  const placed = [...patterns].filter(([path]) => !places.isLost(path))
  return placed.map(([path, pattern]) => {
    const settings = config.routes[path] ?? { toolsets: [] }
    let choice = chooseToolsets({ path, config, pattern, places, report })
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
      get categories() {
        return choice.categories
      },
      get publicCategories() {
        return settings.authorize === undefined ? choice.listed : []
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

/** Parameters with which the route serves something: one that it needs has the name of a toolset. */
export function sampleParams(route: CompiledRoute): Record<string, string> {
  const servesWithout = route.toolsetsFor({}) !== undefined
  const names = [...route.path.matchAll(/:(\w+)(\?)?/g)].filter(([, , optional]) => !optional || !servesWithout)
  return Object.fromEntries(
    names.map(([, name = '']) => [name, route.choice.categories[0] ?? route.toolsets[0] ?? name]),
  )
}

/** An address of the route that serves something. */
export const sampleUrl = (route: CompiledRoute): string => route.url(sampleParams(route))

/** The path of that address, as `explain` and others take it. */
export function samplePath(route: CompiledRoute): string {
  const params = sampleParams(route)
  const filled = route.path.replace(/\/:(\w+)\??/g, (_, name: string) => {
    const value = params[name]
    return value === undefined ? '' : `/${value}`
  })
  return filled === '' ? '/' : filled
}
