// Checks plugin registrations, so that errors name the plugin. Refuses registrations after startup, which would be ignored.
import { formatFinding } from './config/check-definition.ts'
import { describeKind } from './config/explain-problems.ts'
import { validateValue } from './config/validate-value.ts'
import { attributeError } from './http/describe-thrown.ts'
import { StartError } from './http/errors.ts'
import { parsePattern } from './http/path-pattern.ts'
import type { InternalHost } from './internal-host.ts'
import { BODY_TYPES } from './kernel/body.ts'
import type { Endpoint } from './kernel/endpoint.ts'
import { isKoaApp } from './kernel/write-errors.ts'
import type { Call } from './mcp/calls/call.ts'
import type { ToolKey } from './mcp/calls/tool-key-handlers.ts'
import { EXTENSION_SCHEMA, TOOL_KEY_SCHEMA } from './mcp/definitions/definition-schema.ts'
import { resultError } from './mcp/dispatch.ts'

type Fail = (why: string) => StartError
/** Throws for invalid arguments; returns the arguments to register. */
type Check = (args: readonly unknown[], fail: Fail) => readonly unknown[]
type Run = (...given: unknown[]) => unknown

const kindOf = (value: unknown) => (isKoaApp(value) ? 'a Koa app' : value == null ? 'nothing' : describeKind(value))

const functionAt =
  (name: string, index = 0): Check =>
  (args, fail) => {
    const value = args[index]
    if (typeof value === 'function') return args
    const fix = isKoaApp(value) ? '; a Koa app is served with host.mount(path, app)' : ''
    throw fail(`host.${name}() takes a function, not ${kindOf(value)}${fix}`)
  }

function checkEndpoint({ methods, body, page }: Partial<Endpoint>, fail: Fail) {
  if (typeof methods !== 'object' || methods === null) throw fail('has no `methods`')
  for (const [name, handler] of Object.entries<unknown>({ ...methods, page })) {
    if (handler !== undefined && typeof handler !== 'function')
      throw fail(`${name} is ${kindOf(handler)}, not a function`)
  }
  if (body === undefined || Object.hasOwn(BODY_TYPES, body)) return
  throw fail(`has the body "${body}"; it is one of ${Object.keys(BODY_TYPES).join(', ')}`)
}

const endpoint: Check = (args, fail) => {
  const [path, value] = args as Parameters<InternalHost['endpoint']>
  const where = `endpoint('${path}')`
  const check = (defined: Partial<Endpoint> = {}) => checkEndpoint(defined, why => fail(`${where} ${why}`))
  if (typeof value !== 'function') {
    parsePattern(String(path), fail(where).message)
    check(value)
    return args
  }
  const checked: typeof value = route => {
    const defined = value(route)
    if (defined) check(defined)
    return defined
  }
  return [path, checked]
}

const mount: Check = (args, fail) => {
  const [path, app] = args
  if (typeof app === 'function' || isKoaApp(app)) return args
  throw fail(`mount('${path}') takes a Koa app or middleware, not ${kindOf(app)}`)
}

/** Matches a challenge of RFC 9110: a scheme, and parameters in visible ASCII. */
const CHALLENGE = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+( [\x20-\x7e]+)?$/

const authenticate: Check = (args, fail) => {
  const [, settings] = functionAt('authenticate')(args, fail) as Parameters<InternalHost['authenticate']>
  const challenge = settings?.challenge
  if (challenge === undefined || (typeof challenge === 'string' && CHALLENGE.test(challenge))) return args
  const form = 'a scheme and its parameters, such as ApiKey realm="acme"'
  throw fail(`host.authenticate(): \`challenge\` is ${JSON.stringify(challenge)}; expected ${form}`)
}

const toolset: Check = (args, fail) => {
  const [first, ...rest] = args
  const definitions = typeof first === 'string' ? rest[0] : first
  if (Array.isArray(definitions) || (typeof first === 'string' && definitions === undefined)) return args
  throw fail(`host.toolset() takes definitions, or a name and definitions, not ${kindOf(definitions)}`)
}

const matches =
  (schema: object, list: string): Check =>
  (args, fail) => {
    const [name, value] = args
    const [problem] = validateValue(value, schema, [list, String(name)])
    if (problem) throw fail(formatFinding(problem))
    return args
  }

const CHECKS: { readonly [Name in keyof InternalHost]?: Check } = {
  ...Object.fromEntries(
    ['use', 'onRequest', 'authorize', 'cors', 'onReady', 'onStart', 'onReload', 'onCall']
      .concat(['onFinish', 'revisions', 'redirect', 'unlist', 'explain'])
      .map(name => [name, functionAt(name)]),
  ),
  authenticate,
  endpoint,
  mount,
  method: functionAt('method', 1),
  extension: matches(EXTENSION_SCHEMA, 'extensions'),
  toolKey: matches(TOOL_KEY_SCHEMA, 'toolKeys'),
  context: functionAt('context', 1),
  toolset,
  variesByCaller: given => given,
}

const isResult = (result: unknown) => typeof result === 'object' && result !== null

const HOOKS = ['use', 'onRequest', 'authenticate', 'authorize', 'onCall', 'onFinish']

/** Runs a part of the plugin `name`. If the part throws, the log names the plugin. Undefined: the error is from another plugin. */
async function attribute<Result>(name: string | undefined, part: () => Result): Promise<Awaited<Result>> {
  try {
    return await part()
  } catch (error) {
    attributeError(error, name)
    throw error
  }
}

/** Wraps a hook to name its plugin in the log, except for errors passed on from `next()`. */
const attributeHook =
  (name: string, hook: Run, isCall: boolean): Run =>
  (request, next) =>
    attribute(name, async () => {
      const result = await hook(request, () => attribute(undefined, next as Run))
      if (isCall && !isResult(result)) throw resultError((request as Call).method, result)
      return result
    })

/** Names the plugin of a tool key in the log, except for errors of the handler. */
function attributeToolKey(name: string, key: ToolKey): ToolKey {
  const { onCall } = key ?? {}
  if (typeof onCall !== 'function') return key
  return {
    ...key,
    onCall: (call, value, run, tool) =>
      attribute(name, async () => {
        const result = await onCall.call(key, call, value, instead => attribute(undefined, () => run(instead)), tool)
        if (!isResult(result)) throw resultError(`onCall of a tool key`, result)
        return result
      }),
  }
}

export function checkRegistrations<Host extends Pick<InternalHost, 'name'>>(
  host: Host,
  isSettled: () => boolean,
  isBuiltIn: boolean,
): Host {
  const fail: Fail = why => new StartError('MH1504', `plugins.${host.name}: ${why}`, { exitCode: 2 })
  const wrapped = Object.entries(CHECKS).map(([name, check]) => {
    const register = Reflect.get(host, name) as Run
    const isHook = !isBuiltIn && HOOKS.includes(name)
    const declare: Run = (...given) => {
      if (isSettled()) throw fail(`host.${name}() is for setup; later registrations are ignored`)
      const [first, ...rest] = check(given, fail)
      if (!isBuiltIn && name === 'toolKey') return register(first, attributeToolKey(host.name, rest[0] as ToolKey))
      return isHook
        ? register(attributeHook(host.name, first as Run, name === 'onCall'), ...rest)
        : register(first, ...rest)
    }
    return [name, declare]
  })
  return { ...host, ...Object.fromEntries(wrapped) }
}
