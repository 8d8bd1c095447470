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
  readonly owner: PathOwner | undefined
}

interface PathOwner {
  readonly by: string
  readonly at: Path
  readonly isRoute?: boolean
}

function conflictAt(path: string, one: PathOwner | undefined, other: PathOwner | undefined): StartError {
  if (!one || !other) return new StartError('MH1206', `two handlers are registered for ${path}`, { exitCode: 2 })
  const where = one.isRoute || other.isRoute ? `routes['${path}']` : path
  const twice = `plugins.${one.by} serves ${where} twice; change one of the two paths`
  const both = `plugins.${one.by} and plugins.${other.by} both serve ${where}; change the path of one, or disable it`
  const withOptions = [other, one].find(({ at }) => at[0] === 'routes')
  const because = withOptions && `because ${formatPath(withOptions.at)} has options of its own`
  const again = `plugins.${one.by} serves ${where} twice, ${because}; remove them, or set another path there`
  const isAgain = withOptions && formatPath(one.at) !== formatPath(other.at)
  const why = one.by !== other.by ? both : isAgain ? again : twice
  const at = isAgain && one.by === other.by ? withOptions.at : ['plugins', other.by]
  return new StartError('MH1206', why, { exitCode: 2, also: [{ at: ['plugins', one.by] }] }).locatedAt(at)
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
  const mounts = new Map<string, Matched<Target> & Pick<Entry<Target>, 'owner'>>()
  let compiled: Compiled<Target> | undefined

  return {
    /** Throws a StartError if the path is taken or invalid. */
    add(path: string, target: Target, owner?: PathOwner) {
      compiled = undefined
      for (const { pattern, shortened } of formsOf(parsePattern(path, path))) {
        const shape = shapeOf(pattern)
        const other = entries.get(shape)
        if (other && other.shortened === shortened) throw conflictAt(path, other.owner, owner)
        if (pattern.some(({ parameter }) => parameter !== undefined)) loadRouter()
        if (!other || other.shortened) entries.set(shape, { pattern, shortened, target, owner })
      }
    },
    /** Serves a fixed path and all free paths below it. Throws like `add`. */
    addMount(path: string, target: Target, owner?: PathOwner) {
      const shape = shapeOf(parsePattern(path, path))
      if (mounts.has(shape)) throw conflictAt(path, mounts.get(shape)?.owner, owner)
      mounts.set(shape, { target, params: NO_PARAMS, owner })
    },
    match(path: string) {
      compiled ??= compile(entries.values())
      const found = compiled.fixed.get(path) ?? compiled.find?.(path)
      if (found || mounts.size === 0) return found
      for (let prefix = path; prefix !== ''; prefix = prefix.slice(0, prefix.lastIndexOf('/'))) {
        const mounted = mounts.get(prefix)
        if (mounted) return mounted
      }
      return undefined
    },
  }
}
