// What a plugin declares is held, as it comes, against what it must be: a mistake names the plugin, and not a library that
// fell over it later. What comes once the host is settled is refused: it would do nothing. Between `setup` and the notes.
import { StartError } from './http/errors.ts'
import { parsePattern } from './http/path-pattern.ts'
import { BODY_TYPES } from './kernel/body.ts'
import type { Endpoint } from './kernel/endpoint.ts'
import { isKoaApp } from './kernel/write-errors.ts'
import type { PluginHost } from './plugin-host.ts'

type Fail = (why: string) => StartError
/** Throws for what cannot be registered; gives what is registered. */
type Check = (given: readonly unknown[], fail: Fail) => readonly unknown[]

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (isKoaApp(value)) return 'a Koa app'
  if (typeof value === 'object') return Array.isArray(value) ? 'a list' : 'an object'
  return `a ${typeof value}`
}

/** Takes a function there; `what` it is called. */
const functionAt =
  (name: string, index: number, what = 'a function'): Check =>
  (given, fail) => {
    const value = given[index]
    if (typeof value === 'function') return given
    const fix = isKoaApp(value) ? '; a Koa app is served with host.mount(path, app)' : ''
    throw fail(`host.${name}() takes ${what}, not ${kindOf(value)}${fix}`)
  }

const middleware = (name: string) => functionAt(name, 0, 'Koa middleware')

function checkEndpoint({ methods, body, page }: Partial<Endpoint>, fail: Fail) {
  if (typeof methods !== 'object' || methods === null) throw fail('has no methods, handlers by verb')
  for (const [verb, handler] of Object.entries<unknown>(methods)) {
    if (handler === undefined || typeof handler === 'function') continue
    throw fail(`has for ${verb} ${kindOf(handler)}, not a function`)
  }
  if (page !== undefined && typeof page !== 'function') throw fail(`has as its page ${kindOf(page)}, not a function`)
  if (body === undefined || Object.hasOwn(BODY_TYPES, body)) return
  throw fail(`has the body "${body}"; it is one of ${Object.keys(BODY_TYPES).join(', ')}`)
}

const endpoint: Check = (given, fail) => {
  const [path, value] = given as Parameters<PluginHost['endpoint']>
  const where = `endpoint('${path}')`
  parsePattern(String(path), fail(where).message)
  checkEndpoint(value ?? {}, why => fail(`${where} ${why}`))
  return given
}

const routeEndpoint: Check = (given, fail) => {
  const [suffix, define] = functionAt('routeEndpoint', 1)(given, fail) as Parameters<PluginHost['routeEndpoint']>
  const checked: typeof define = route => {
    const defined = define(route)
    if (defined) checkEndpoint(defined, why => fail(`routeEndpoint('${suffix}') ${why}`))
    return defined
  }
  return [suffix, checked]
}

const mount: Check = (given, fail) => {
  const [path, app] = given
  if (typeof app === 'function' || isKoaApp(app)) return given
  throw fail(`mount('${path}') takes a Koa app or middleware, not ${kindOf(app)}`)
}

const anything: Check = given => given

/** What is for `setup` and `serving` tasks alone, but for `fill`, which is for `setup`. */
const DECLARING: { readonly [Name in keyof PluginHost]?: Check } = {
  use: middleware('use'),
  edge: middleware('edge'),
  identify: middleware('identify'),
  admit: middleware('admit'),
  crossOrigin: functionAt('crossOrigin', 0),
  endpoint,
  routeEndpoint,
  mount,
  serving: functionAt('serving', 0),
  checking: functionAt('checking', 0),
  starting: functionAt('starting', 0),
  reconfigure: functionAt('reconfigure', 0),
  around: functionAt('around', 0),
  observe: functionAt('observe', 0),
  method: functionAt('method', 1),
  revisions: functionAt('revisions', 0),
  extension: anything,
  contribute: anything,
  redirect: functionAt('redirect', 0),
  unlist: functionAt('unlist', 0),
  variesByCaller: anything,
  explain: functionAt('explain', 0),
}

/** The same host; what declares throws a StartError for mistakes, and once `isSettled`. */
export function declaring<Host extends Pick<PluginHost, 'name'>>(host: Host, isSettled: () => boolean): Host {
  const fail: Fail = why => new StartError(`plugins.${host.name}: ${why}`, { exitCode: 2 })
  const wrapped = Object.entries(DECLARING).map(([name, check]) => {
    const register = Reflect.get(host, name) as (...given: unknown[]) => unknown
    const late = `host.${name}() is for setup and serving tasks; what is registered later would do nothing`
    const declare = (...given: unknown[]) => {
      if (isSettled()) throw fail(late)
      return register(...check(given, fail))
    }
    return [name, declare]
  })
  return { ...host, ...Object.fromEntries(wrapped) }
}
