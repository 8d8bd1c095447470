// Validates the params of each method once, before plugins and methods use them.
import type { Call } from '../calls/call.ts'
import { isObject } from '../wire/message.ts'
import { type JsonObject, LOG_LEVELS, type LogLevel } from '../wire/protocol.ts'

export interface ParamsOf {
  initialize: { protocolVersion: string; clientInfo: JsonObject; capabilities: JsonObject }
  'logging/setLevel': { level: LogLevel }
  'tools/call': { name: string; arguments?: JsonObject }
  'prompts/get': { name: string; arguments?: JsonObject }
  'resources/read': { uri: string }
  'resources/subscribe': { uri: string }
  'resources/unsubscribe': { uri: string }
  'completion/complete': {
    ref: { type: 'ref/prompt'; name: string } | { type: 'ref/resource'; uri: string }
    argument: { name: string; value: string }
    context?: { arguments?: Record<string, string> }
  }
}

type Check = (value: unknown) => string | undefined

const text: Check = value => (typeof value === 'string' ? undefined : '` must be a string')

const oneOf =
  (values: readonly unknown[]): Check =>
  value =>
    values.includes(value) ? undefined : `\` must be equal to one of the allowed values: ${values.join(', ')}`

function shape(members: Readonly<Record<string, Check>>, required: readonly string[] = [], others?: Check): Check {
  return value => {
    if (!isObject(value)) return '` must be an object'
    for (const name of required) if (!Object.hasOwn(value, name)) return `\` must have required property '${name}'`
    for (const name in value) {
      const check = Object.hasOwn(members, name) ? members[name] : others
      const problem = check?.(value[name])
      if (problem !== undefined) return `.${name.slice(0, 40)}${problem}`
    }
    return undefined
  }
}

const object = shape({})
const named = shape({ name: text, arguments: object }, ['name'])
const resource = shape({ uri: text }, ['uri'])
const list = shape({ cursor: text })
const clientInfo = shape({ name: text, version: text, title: text, description: text, websiteUrl: text })
const type = oneOf(['ref/prompt', 'ref/resource'])
const promptRef = shape({ type, name: text }, ['type', 'name'])
const resourceRef = shape({ type, uri: text }, ['type', 'uri'])

export const CHECKS: ReadonlyMap<string, Check> = new Map(
  Object.entries<Check>({
    initialize: shape({ protocolVersion: text, clientInfo, capabilities: object }, [
      'protocolVersion',
      'clientInfo',
      'capabilities',
    ]),
    'logging/setLevel': shape({ level: oneOf(LOG_LEVELS) }, ['level']),
    'tools/list': list,
    'tools/call': named,
    'resources/list': list,
    'resources/templates/list': list,
    'resources/read': resource,
    'resources/subscribe': resource,
    'resources/unsubscribe': resource,
    'prompts/list': list,
    'prompts/get': named,
    'completion/complete': shape(
      {
        ref: value => (Object(value).type === 'ref/prompt' ? promptRef : resourceRef)(value),
        argument: shape({ name: text, value: text }, ['name', 'value']),
        context: shape({ arguments: shape({}, [], text) }),
      },
      ['ref', 'argument'],
    ),
  } satisfies Record<keyof ParamsOf | `${string}/list`, Check>),
)

/** Formats a problem, such as `params.ref.name must be a string`. Undefined for other methods. */
export const paramsText = (problem: string): string => `\`params${problem}`

export const paramsOf = <Name extends keyof ParamsOf>(call: Call, _method: Name): ParamsOf[Name] =>
  call.params as unknown as ParamsOf[Name]

export function clientInfoProblem(info: unknown): string | undefined {
  const problem = clientInfo(info)
  return problem && `\`clientInfo${problem}`
}
