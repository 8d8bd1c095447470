// The config's paths, compiled: which toolsets a path serves, and which endpoint a request's path names.
// Fixed paths win over parameters. `/a` and `/a/` are one. Matching is case-sensitive.
import Router, { type Layer } from '@koa/router'
import type { Config } from '../define-config.ts'
import type { AuthorizeRule, Route } from '../define-plugin.ts'
import { StartError } from '../errors.ts'
import type { Revision } from '../protocol.ts'

export interface CompiledRoute extends Route {
  /** The toolsets at this address; undefined where the parameter names none. */
  toolsetsFor(params: Readonly<Record<string, string>>): readonly string[] | undefined
  /** Every combination of toolsets that an address of this route can have. */
  knownCombinations(): ReadonlyArray<readonly string[]>
}

const PARAMETER = /^:([A-Za-z_]\w*)(\?)?$/

interface PathPart {
  readonly text: string
  readonly parameter?: string
  readonly optional?: boolean
}

/** Splits `/t/:category?`. Throws a StartError for what the config's paths do not have. */
function parsePath(path: string): PathPart[] {
  const bad = (why: string) => new StartError(`routes['${path}']: ${why}`, { exitCode: 2 })
  if (!path.startsWith('/')) throw bad('a path starts with "/"')
  const parts = path
    .split('/')
    .filter(part => part !== '')
    .map((text): PathPart => {
      const [, parameter, optional] = PARAMETER.exec(text) ?? []
      if (parameter !== undefined) return { text, parameter, optional: optional !== undefined }
      if (/[:*?{}()[\]!+\\]/.test(text)) throw bad(`"${text}" is neither plain text nor a parameter such as ":name"`)
      return { text }
    })
  const names = parts.flatMap(({ parameter }) => parameter ?? [])
  if (new Set(names).size < names.length) throw bad('a parameter occurs twice')
  if (parts.some(({ optional }, index) => optional && index < parts.length - 1)) {
    throw bad('only the last parameter may be optional')
  }
  return parts
}

function toolsetChooser(path: string, config: Config, parameters: readonly string[]) {
  const settings = config.routes[path] ?? { toolsets: [] }
  const fallback = settings.default
  const listed = [settings.toolsets].flat()
  const [first = ''] = listed
  const [, parameter] = PARAMETER.exec(first) ?? []
  if (parameter === undefined) {
    return { all: listed, choose: () => listed as readonly string[], combinations: [listed] }
  }
  if (listed.length > 1 || !parameters.includes(parameter)) {
    const why = listed.length > 1 ? `"${first}" stands alone` : `the path has no parameter ":${parameter}"`
    throw new StartError(`routes['${path}'].toolsets: ${why}`, { exitCode: 2 })
  }
  const all = Object.keys(config.toolsets)
  const sets = new Map(all.map(name => [name, [name] as readonly string[]]))
  const choose = (params: Readonly<Record<string, string>>) => {
    const name = params[parameter]
    return name === undefined ? fallback : sets.get(name)
  }
  return { all, choose, combinations: [...sets.values(), ...(fallback ? [fallback] : [])] }
}

function checkToolsets(path: string, names: readonly string[], config: Config) {
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
export function compileRoutes(config: Config, late: LateFacts): CompiledRoute[] {
  const routes = Object.entries(config.routes).map(([path, settings]) => {
    const parts = parsePath(path)
    const parameters = parts.flatMap(({ parameter }) => parameter ?? [])
    const { all, choose, combinations } = toolsetChooser(path, config, parameters)
    checkToolsets(path, [...all, ...(settings.default ?? [])], config)
    const route: CompiledRoute = {
      path,
      stateless: settings.stateless ?? config.stateless ?? false,
      listen: settings.listen ?? !(settings.stateless ?? config.stateless ?? false),
      authorize: settings.authorize as AuthorizeRule | undefined,
      cors: settings.cors,
      toolsets: all,
      get revisions() {
        return late.revisions(route)
      },
      toolsetsFor: choose,
      knownCombinations: () => combinations,
      url(params: Readonly<Record<string, string>> = {}) {
        const filled = parts.flatMap(({ text, parameter }) => {
          if (parameter === undefined) return text
          const value = params[parameter]
          return value === undefined ? [] : encodeURIComponent(value)
        })
        const base = late.address()
        // The root of a publicUrl that has a path is that path, as clients write it: without a slash at its end.
        return filled.length === 0 && /^https?:\/\/[^/]+\/./.test(base) ? base : `${base}/${filled.join('/')}`
      },
    }
    return route
  })
  const seen = new Map<string, string>()
  for (const { path } of routes) {
    const shape = normalize(path).replace(/:\w+/g, ':')
    const other = seen.get(shape)
    if (other !== undefined)
      throw new StartError(`routes['${path}'] and routes['${other}'] are one path`, { exitCode: 2 })
    seen.set(shape, path)
  }
  return routes
}

/** An address of the route that serves something: a parameter that it needs has the name of a toolset. */
export function sampleUrl(route: CompiledRoute): string {
  const servesWithout = route.toolsetsFor({}) !== undefined
  const names = [...route.path.matchAll(/:(\w+)(\?)?/g)].filter(([, , optional]) => !optional || !servesWithout)
  return route.url(Object.fromEntries(names.map(([, name = '']) => [name, route.toolsets[0] ?? name])))
}

/** Without its trailing slash. */
export const normalize = (path: string): string => (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)

/** `/t/:category?` as path-to-regexp 8 spells it. */
const toRouterPath = (path: string) => path.replace(/\/:(\w+)\?/g, '{/:$1}')

export interface Matched<Target> {
  readonly target: Target
  readonly params: Readonly<Record<string, string>>
}

export interface PathTable<Target> {
  /** Throws a StartError when the path is taken. */
  add(path: string, target: Target): void
  match(path: string): Matched<Target> | undefined
}

const NO_PARAMS = Object.freeze({})

/** Path -> target. Fixed paths are one look-up; the others go through @koa/router's compiled table. */
export function createPathTable<Target>(): PathTable<Target> {
  const fixed = new Map<string, Matched<Target>>()
  const router = new Router({ sensitive: true })
  const targets = new Map<unknown, Target>()
  const taken = new Set<string>()

  function params(layer: Layer, path: string): Record<string, string> | undefined {
    try {
      const values = layer.params(path, layer.captures(path))
      const entries = Object.entries(values).filter(([, value]) => value !== undefined)
      // An encoded slash would name another path than the one that was matched.
      return entries.some(([, value]) => value.includes('/')) ? undefined : Object.fromEntries(entries)
    } catch {
      return undefined
    }
  }

  return {
    add(given, target) {
      const path = normalize(given)
      if (taken.has(path)) throw new StartError(`two things would be served at ${path}`, { exitCode: 2 })
      taken.add(path)
      if (!path.includes(':')) fixed.set(path, { target, params: NO_PARAMS })
      else
        targets.set(
          router.register(toRouterPath(path), ['POST'], () => undefined),
          target,
        )
    },
    match(given) {
      const path = normalize(given)
      const found = fixed.get(path)
      if (found || targets.size === 0) return found
      let best: Matched<Target> | undefined
      for (const layer of router.match(path, 'POST').path) {
        const values = params(layer, path)
        const target = targets.get(layer)
        if (!values || target === undefined) continue
        // `/t/sse` is the fixed end of `/t/:category?/sse` before it is a category.
        if (!best || Object.keys(values).length < Object.keys(best.params).length) best = { target, params: values }
      }
      return best
    },
  }
}
