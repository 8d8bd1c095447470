// Compiles the routes of the config: the toolsets of each URL.
import { type Path, type Report, StartError, stopAtFirst, tryReport } from '../../http/errors.ts'
import { fill, indexRoutes, PARAMETER, type Pattern, parsePattern, type RouteIndex } from '../../http/path-pattern.ts'
import type { AuthorizeRule, Route } from '../../kernel/route.ts'
import { didYouMean } from '../nearest.ts'
import { isObject } from '../wire/message.ts'
import type { Revision } from '../wire/revisions.ts'

/** A route with its MCP settings. */
export interface McpRoute extends Route {
  readonly stateless: boolean
  readonly listen: boolean
  readonly toolsets: readonly string[]
  readonly categories: readonly string[]
  /** The protocol versions of its transports, newest first; complete after plugin set-up. */
  readonly revisions: readonly Revision[]
}

export interface CompiledRoute extends McpRoute {
  serveAs(other: CompiledRoute): void
  /** Selects among the toolsets of the config and `provided` ones. Reports unknown names. */
  chooseToolsets(provided: Iterable<string>, report: Report): void
  readonly choice: ToolsetChoice
  knownCombinations(): ReadonlyArray<readonly string[]>
}

export const TOOLSET_NAME_PATTERN = '^[^:/][^/]*$'

function parsePath(path: string): Pattern {
  const at = ['routes', path]
  const parts = parsePattern(path, { at })
  if (parts.some(({ optional }, index) => optional && index < parts.length - 1)) {
    throw new StartError('MH1201', 'only the last parameter may be optional', { at })
  }
  return parts
}

interface RoutesConfig {
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

interface ParameterChoice {
  readonly param: string
  readonly of: readonly string[]
}

export interface ToolsetChoice {
  readonly all: readonly string[]
  choose(params: Readonly<Record<string, string>>): readonly string[] | undefined
  readonly combinations: ReadonlyArray<readonly string[]>
  readonly categories: readonly string[]
  /** Values that a route lists by name. Only these appear in documentation. */
  readonly listed: readonly string[]
  readonly isOpen: boolean
  readonly parameter: string | undefined
}

interface Subject {
  readonly path: string
  readonly config: RoutesConfig
  readonly pattern: Pattern
  readonly index: RouteIndex
  readonly report: Report
}

function chooseToolsets({ path, config, pattern, index, report }: Subject): ToolsetChoice {
  const settings = config.routes[path] ?? { toolsets: [] }
  const at: Path = ['routes', path, 'toolsets']
  const choice = isParameterChoice(settings.toolsets) ? settings.toolsets : undefined
  const listed = choice ? [] : namesIn(settings.toolsets)
  const [first = ''] = listed
  const parameter = choice?.param ?? PARAMETER.exec(first)?.[1]
  if (parameter === undefined) {
    if (settings.default) {
      const why = 'it needs `toolsets: { param, of }` and a path with that parameter, which is optional: "/:name?"'
      report(new StartError('MH1204', why, { at: ['routes', path, 'default'] }))
    }
    const toolsets = knownAmong(listed, index => pathAt(at, settings.toolsets, index), config, report)
    const fixed = { categories: [], listed: [], isOpen: false, parameter }
    return { all: toolsets, choose: () => toolsets, combinations: [toolsets], ...fixed }
  }
  const part = pattern.find(part => part.parameter === parameter)
  if (listed.length > 1 || !part) {
    const why = listed.length > 1 ? `"${first}" must be the only entry` : `the path has no parameter ":${parameter}"`
    report(new StartError('MH1204', why, { at: choice ? [...at, 'param'] : at }))
  }
  if (settings.default && part && !part.optional) {
    const why = `the parameter is required; make it optional: "${path}?"`
    report(new StartError('MH1204', why, { at: ['routes', path, 'default'] }))
  }
  const candidates = choice
    ? knownAmong(choice.of, index => [...at, 'of', index], config, report)
    : Object.keys(config.toolsets).filter(name => !isInternal(config.toolsets[name]))
  const names = candidates.filter(name => !index.isTaken(path, { [parameter]: name }))
  const sets = new Map(names.map(name => [name, [name] as readonly string[]]))
  const defaults =
    settings.default && knownAmong(settings.default, index => ['routes', path, 'default', index], config, report)
  const fallback = index.isTaken(path, {}) ? undefined : defaults
  return {
    all: [...new Set([...names, ...(fallback ?? [])])],
    choose(params) {
      const name = params[parameter]
      return name === undefined ? fallback : sets.get(name)
    },
    combinations: [...sets.values(), ...(fallback ? [fallback] : [])],
    categories: names,
    listed: names.filter(name => isListed(config, name)),
    isOpen: choice === undefined,
    parameter,
  }
}

const isParameterChoice = (toolsets: unknown): toolsets is ParameterChoice => isObject(toolsets)

/** True if parameters without a list cannot select the toolset. */
export const isInternal = (toolset: unknown): boolean => isObject(toolset) && toolset['internal'] === true

const namesIn = (toolsets: string | readonly string[] | ParameterChoice): readonly string[] =>
  isParameterChoice(toolsets) ? toolsets.of : [toolsets].flat()

const isListed = ({ routes }: RoutesConfig, toolset: string): boolean =>
  Object.values(routes).some(
    ({ toolsets, default: defaults = [] }) => namesIn(toolsets).includes(toolset) || defaults.includes(toolset),
  )

const pathAt = (at: Path, written: unknown, index: number): Path => (typeof written === 'string' ? at : [...at, index])

function knownAmong(
  names: readonly string[],
  at: (index: number) => Path,
  { toolsets }: RoutesConfig,
  report: Report,
): readonly string[] {
  const isKnown = (name: string) => Object.hasOwn(toolsets, name)
  for (const [index, name] of names.entries()) {
    if (isKnown(name)) continue
    const what = `there is no toolset "${name}"; ${didYouMean(name, Object.keys(toolsets))}`
    report(new StartError('MH1203', what, { at: at(index) }))
  }
  return names.every(isKnown) ? names : names.filter(isKnown)
}

interface RouteServices {
  readonly address: () => string
  readonly revisions: (route: CompiledRoute) => readonly Revision[]
}

function parsePaths(paths: readonly string[], report: Report): Map<string, Pattern> {
  const patterns = new Map<string, Pattern>()
  for (const path of paths) {
    const pattern = tryReport(report, () => parsePath(path))
    if (pattern) patterns.set(path, pattern)
  }
  return patterns
}

export function compileRoutes(config: RoutesConfig, late: RouteServices, report = stopAtFirst): CompiledRoute[] {
  const patterns = parsePaths(Object.keys(config.routes), report)
  const index = indexRoutes(patterns, report)
  const valid = [...patterns].filter(([path]) => !index.hasFailed(path))
  return valid.map(([path, pattern]) => {
    const settings = config.routes[path] ?? { toolsets: [] }
    // Unknown names are reported once the toolsets of plugins are known.
    let choice = chooseToolsets({ path, config, pattern, index, report: () => undefined })
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
      chooseToolsets(provided, report) {
        const toolsets = { ...config.toolsets, ...Object.fromEntries([...provided].map(name => [name, []])) }
        choice = chooseToolsets({ path, config: { ...config, toolsets }, pattern, index, report })
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
      toolsetsFor: pattern.some(({ parameter }) => parameter !== undefined)
        ? params => (index.isTaken(path, params) ? undefined : choice.choose(params))
        : params => choice.choose(params),
      knownCombinations: () => choice.combinations,
      url(params: Readonly<Record<string, string>> = {}) {
        const filled = fill(pattern, params).filter(({ parameter }) => parameter === undefined)
        // The canonical root URL has no trailing slash.
        return [late.address(), ...filled.map(({ text }) => text)].join('/')
      },
    }
    return route
  })
}

export function sampleParams(route: CompiledRoute): Record<string, string> {
  const servesWithout = route.toolsetsFor({}) !== undefined
  const names = [...route.path.matchAll(/:(\w+)(\?)?/g)].filter(([, , optional]) => !optional || !servesWithout)
  return Object.fromEntries(
    names.map(([, name = '']) => [name, route.choice.categories[0] ?? route.toolsets[0] ?? name]),
  )
}

export const sampleUrl = (route: CompiledRoute): string => route.url(sampleParams(route))

export function samplePath(route: CompiledRoute): string {
  const params = sampleParams(route)
  const filled = route.path.replace(/\/:(\w+)\??/g, (_, name: string) =>
    params[name] === undefined ? '' : `/${params[name]}`,
  )
  return filled || '/'
}
