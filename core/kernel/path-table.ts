// Maps canonical paths to endpoints: fixed paths by direct lookup, patterns by @koa/router. The most specific match
// wins.
import { createRequire } from 'node:module'
import type Router from '@koa/router'
import { formatPath, type Path, StartError } from '../http/errors.ts'
import { formsOf, type Pattern, parsePattern, rankOf, shapeOf } from '../http/path-pattern.ts'

export interface Matched<Target> {
  readonly target: Target
  readonly params: Readonly<Record<string, string>>
}

interface Entry<Target> {
  readonly pattern: Pattern
  readonly shortened: boolean
  readonly target: Target
  readonly server: Server | undefined
}

interface Server {
  readonly by: string
  readonly at: Path
  readonly isRoute?: boolean
}

function clashAt(path: string, one: Server | undefined, other: Server | undefined): StartError {
  if (!one || !other) return new StartError('MH1206', `two handlers are registered for ${path}`, { exitCode: 2 })
  const place = one.isRoute || other.isRoute ? `routes['${path}']` : path
  const twice = `plugins.${one.by} serves ${place} twice; change one of the two paths`
  const both = `plugins.${one.by} and plugins.${other.by} both serve ${place}; change the path of one, or disable it`
  const own = [other, one].find(({ at }) => at[0] === 'routes')
  const because = own && `because ${formatPath(own.at)} has options of its own`
  const again = `plugins.${one.by} serves ${place} twice, ${because}; remove them, or set another path there`
  const isAgain = own && formatPath(one.at) !== formatPath(other.at)
  const why = one.by !== other.by ? both : isAgain ? again : twice
  const at = isAgain && one.by === other.by ? own.at : ['plugins', other.by]
  return new StartError('MH1206', why, { exitCode: 2, also: [{ at: ['plugins', one.by] }] }).orAt(at)
}

// Loaded lazily: the router takes a twentieth of the startup time.
const loadRouter = (): typeof Router => createRequire(import.meta.url)('@koa/router')

export const NO_PARAMS = Object.freeze({})

const toRouterPath = (pattern: Pattern) =>
  pattern
    .map(
      ({ text, parameter }) =>
        `/${parameter === undefined ? text.replace(/[{}()[\]+?!:*\\]/g, '\\$&') : `:${parameter}`}`,
    )
    .join('')

export const shapesOf = (path: string): string[] =>
  formsOf(parsePattern(path, path)).map(({ pattern }) => shapeOf(pattern))

interface Compiled<Target> {
  readonly fixed: ReadonlyMap<string, Matched<Target>>
  readonly find: ((path: string) => Matched<Target> | undefined) | undefined
}

function compile<Target>(entries: Iterable<Entry<Target>>): Compiled<Target> {
  const fixed = new Map<string, Matched<Target>>()
  let router: Router | undefined
  const targets = new Map<unknown, Target>()
  const sorted = [...entries].sort((one, other) => rankOf(one.pattern).localeCompare(rankOf(other.pattern)))
  for (const { pattern, target } of sorted) {
    if (pattern.every(({ parameter }) => parameter === undefined)) {
      fixed.set(shapeOf(pattern), { target, params: NO_PARAMS })
    } else {
      router ??= new (loadRouter())({ sensitive: true })
      targets.set(
        router.register(toRouterPath(pattern), ['POST'], () => undefined),
        target,
      )
    }
  }

  const find = (path: string) => {
    const [layer] = router?.match(path, 'POST').path ?? []
    const target = targets.get(layer)
    return layer && target && { target, params: layer.params(path, layer.captures(path)) }
  }
  return { fixed, find: router && find }
}

export function createPathTable<Target>() {
  const entries = new Map<string, Entry<Target>>()
  const below = new Map<string, Matched<Target> & Pick<Entry<Target>, 'server'>>()
  let compiled: Compiled<Target> | undefined

  return {
    /** Throws a StartError if the path is taken or invalid. */
    add(path: string, target: Target, server?: Server) {
      compiled = undefined
      for (const { pattern, shortened } of formsOf(parsePattern(path, path))) {
        const shape = shapeOf(pattern)
        const other = entries.get(shape)
        if (other && other.shortened === shortened) throw clashAt(path, other.server, server)
        if (pattern.some(({ parameter }) => parameter !== undefined)) loadRouter()
        if (!other || other.shortened) entries.set(shape, { pattern, shortened, target, server })
      }
    },
    /** Serves a fixed path and all free paths below it. Throws like `add`. */
    addBelow(path: string, target: Target, server?: Server) {
      const shape = shapeOf(parsePattern(path, path))
      if (below.has(shape)) throw clashAt(path, below.get(shape)?.server, server)
      below.set(shape, { target, params: NO_PARAMS, server })
    },
    match(path: string) {
      compiled ??= compile(entries.values())
      const found = compiled.fixed.get(path) ?? compiled.find?.(path)
      if (found || below.size === 0) return found
      for (let place = path; place !== ''; place = place.slice(0, place.lastIndexOf('/'))) {
        const mounted = below.get(place)
        if (mounted) return mounted
      }
      return undefined
    },
  }
}
