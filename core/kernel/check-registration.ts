// What a plugin registers is held, as it comes, against what it must be: a mistake names the plugin, and not a library that
// fell over it later; what comes once the host is settled would do nothing.
import { StartError } from '../http/errors.ts'
import { BODY_TYPES } from './body.ts'
import type { Endpoint } from './endpoint.ts'
import { isKoaApp } from './mounted-app.ts'
import type { PluginInstance } from './plugin-plan.ts'

type Register = (...given: never[]) => unknown

const failOf = (plugin: string, why: string) => new StartError(`plugins.${plugin}: ${why}`, { exitCode: 2 })

function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing'
  if (isKoaApp(value)) return 'a Koa app'
  return Array.isArray(value) ? 'a list' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/**
 * The same functions, for the plugin's setup and serving tasks alone: later they throw a StartError. `functionAt`: which of
 * their arguments is one; `middleware`: those that take Koa's.
 */
export function declaring<Api extends Readonly<Record<keyof Api, Register>>>(
  { name: plugin }: PluginInstance,
  isSettled: () => boolean,
  api: Api,
  { functionAt, middleware = [] }: { functionAt: Partial<Record<keyof Api, number>>; middleware?: readonly string[] },
): Api {
  const wrap = (name: string, register: Register) => {
    const at = functionAt[name as keyof Api]
    return (...given: never[]) => {
      if (isSettled()) {
        throw failOf(plugin, `host.${name}() is for setup and serving tasks; what is registered later would do nothing`)
      }
      if (at !== undefined && typeof given[at] !== 'function') {
        const taken = middleware.includes(name) ? 'Koa middleware' : 'a function'
        const fix = isKoaApp(given[at]) ? '; a Koa app is served with host.mount(path, app)' : ''
        throw failOf(plugin, `host.${name}() takes ${taken}, not ${kindOf(given[at])}${fix}`)
      }
      return register(...given)
    }
  }
  return Object.fromEntries(
    Object.entries<Register>(api).map(([name, register]) => [name, wrap(name, register)]),
  ) as unknown as Api
}

/** Throws a StartError for an endpoint that could not be served. */
export function checkEndpoint(plugin: string, path: string, endpoint: Partial<Endpoint> | undefined) {
  const fail = (why: string) => failOf(plugin, `endpoint('${path}') ${why}`)
  const { methods, body } = endpoint ?? {}
  if (typeof methods !== 'object' || methods === null) throw fail('has no methods, handlers by verb')
  for (const [verb, handler] of Object.entries<unknown>(methods)) {
    if (handler !== undefined && typeof handler !== 'function') {
      throw fail(`has for ${verb} ${kindOf(handler)}, not a function`)
    }
  }
  if (body !== undefined && !Object.hasOwn(BODY_TYPES, body)) {
    throw fail(`has the body "${body}"; it is one of ${Object.keys(BODY_TYPES).join(', ')}`)
  }
}

/** Throws a StartError for what cannot be mounted. */
export function checkApp(plugin: string, path: string, app: unknown) {
  if (typeof app === 'function' || isKoaApp(app)) return
  throw failOf(plugin, `mount('${path}') takes a Koa app or middleware, not ${kindOf(app)}`)
}
