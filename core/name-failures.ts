// Names the plugin in what its hooks throw, for the log (core/http/describe-thrown.ts). Of plugins that are not built in
// alone: it takes a promise per request and hook. Around the host that a plugin is given.
import { blame } from './http/describe-thrown.ts'
import type { Endpoint } from './kernel/endpoint.ts'
import { isObject } from './mcp/is-object.ts'
import type { PluginHost } from './plugin-host.ts'

type Run = (...given: unknown[]) => unknown
type Next = () => Promise<unknown>

/** Calls `run`; what it throws, now or later, is the plugin's. */
function named(name: string, run: Run): Run {
  const note = (error: unknown): never => {
    blame(error, name)
    throw error
  }
  return (...given) => {
    try {
      const value = run(...given)
      return value instanceof Promise ? value.catch(note) : value
    } catch (error) {
      return note(error)
    }
  }
}

/** The same for what goes on with `next()`: what comes from behind it is not the plugin's. */
function namedMiddleware(name: string, middleware: Run): Run {
  return async (request, next) => {
    let calls = 0
    let passed: { readonly error: unknown } | undefined
    const behind: Next = () => {
      const isFirst = calls++ === 0
      return (next as Next)().catch((error: unknown) => {
        // That it was called again is the plugin's own mistake.
        if (isFirst) passed = { error }
        throw error
      })
    }
    try {
      return await middleware(request, behind)
    } catch (error) {
      if (passed?.error !== error) blame(error, name)
      throw error
    }
  }
}

function namedEndpoint(name: string, endpoint: Partial<Endpoint> | undefined) {
  const methods = Object.entries(endpoint?.methods ?? {})
  return { ...endpoint, methods: Object.fromEntries(methods.map(([verb, run]) => [verb, run && once(name, run)])) }
}

type Wrap = (name: string, given: unknown) => unknown

/** What is no function stays as it is: its author is told so elsewhere. */
const around: Wrap = (name, given) => (typeof given === 'function' ? namedMiddleware(name, given as Run) : given)
const once: Wrap = (name, given) => (typeof given === 'function' ? named(name, given as Run) : given)
const endpoint: Wrap = (name, given) =>
  isObject(given) && isObject(given['methods']) ? namedEndpoint(name, given) : given
const defining: Wrap = (name, given) =>
  typeof given === 'function' ? (route: unknown) => endpoint(name, (given as Run)(route)) : given

/** Which argument of a hook is the plugin's code, and how it is wrapped. */
const HOOKS: { readonly [Name in keyof PluginHost]?: readonly [index: number, wrap: Wrap] } = {
  use: [0, around],
  edge: [0, around],
  identify: [0, around],
  admit: [0, around],
  around: [0, around],
  observe: [0, once],
  redirect: [0, once],
  method: [1, once],
  endpoint: [1, endpoint],
  routeEndpoint: [1, defining],
}

/** The same host; what the hooks that a plugin gives it throw has the plugin's name in the log. */
export function namingFailures<Host extends Pick<PluginHost, 'name'>>(host: Host): Host {
  const wrapped = Object.entries(HOOKS).map(([hook, [index, wrap]]) => {
    const register = Reflect.get(host, hook) as Run
    return [
      hook,
      (...given: unknown[]) => register(...given.map((value, at) => (at === index ? wrap(host.name, value) : value))),
    ]
  })
  return { ...host, ...Object.fromEntries(wrapped) }
}
