// What the params of each method must look like: checked once, before a plugin or a method sees them, so that nobody
// behind this uses a value of another type than it takes it for. The shapes are those of the revisions' schemas.
import type { Ajv2020, ValidateFunction } from 'ajv/dist/2020.js'
import type { Call } from '../call.ts'
import { type JsonObject, type JsonSchema, LOG_LEVELS, type LogLevel } from '../protocol.ts'
import { loadAjv2020 } from '../schema/ajv.ts'
import { BUILT_PARAM_VALIDATORS } from './built-param-validators.ts'

/** The params of the host's own methods, as far as the host uses them. */
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

const text: JsonSchema = { type: 'string' }
const object: JsonSchema = { type: 'object' }

const shape = (properties: Record<string, JsonSchema>, required: readonly string[] = []): JsonSchema => ({
  type: 'object',
  properties,
  required,
})

const resource = shape({ uri: text }, ['uri'])
const list = shape({ cursor: text })
/** The client's own words about itself: what shows them takes them for text. */
const CLIENT_INFO = shape({ name: text, version: text, title: text, description: text, websiteUrl: text })

const SHAPES: Readonly<Record<keyof ParamsOf | `${string}/list`, JsonSchema>> = {
  initialize: shape({ protocolVersion: text, clientInfo: CLIENT_INFO, capabilities: object }, [
    'protocolVersion',
    'clientInfo',
    'capabilities',
  ]),
  'logging/setLevel': shape({ level: { enum: LOG_LEVELS } }, ['level']),
  'tools/list': list,
  'tools/call': shape({ name: text, arguments: object }, ['name']),
  'resources/list': list,
  'resources/templates/list': list,
  'resources/read': resource,
  'resources/subscribe': resource,
  'resources/unsubscribe': resource,
  'prompts/list': list,
  // Its arguments are looked at with the prompt in hand, which says more.
  'prompts/get': shape({ name: text, arguments: object }, ['name']),
  'completion/complete': shape(
    {
      ref: {
        ...shape({ type: { enum: ['ref/prompt', 'ref/resource'] } }, ['type']),
        if: { properties: { type: { const: 'ref/prompt' } } },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: shape({ name: text }, ['name']),
        else: shape({ uri: text }, ['uri']),
      },
      argument: shape({ name: text, value: text }, ['name', 'value']),
      context: shape({ arguments: { type: 'object', additionalProperties: text } }),
    },
    ['ref', 'argument'],
  ),
}

/** Every schema by its name: that of the method, and what a client says about itself. */
export const PARAM_SCHEMAS: Readonly<Record<string, JsonSchema>> = { ...SHAPES, clientInfo: CLIENT_INFO }

// Nothing of an author is in these: to compile the meta-schema would be most of the first request.
export const PARAM_OPTIONS = { strict: false, meta: false, validateSchema: false } as const
let ajv: Ajv2020 | undefined
const compiled = new Map<string, ValidateFunction>(Object.entries(BUILT_PARAM_VALIDATORS))

/** From source: the built package has them all. */
function compileNow(name: keyof typeof PARAM_SCHEMAS): ValidateFunction {
  ajv ??= new (loadAjv2020().Ajv2020)(PARAM_OPTIONS)
  const validate = ajv.compile(PARAM_SCHEMAS[name] ?? false)
  compiled.set(name, validate)
  return validate
}

function validatorOf(name: keyof typeof PARAM_SCHEMAS): ValidateFunction {
  return compiled.get(name) ?? compileNow(name)
}

/** Such as `params.ref.name` must be string; a client's own names in it are cut. */
function complain({ errors }: ValidateFunction, root: string): string {
  const [error] = (errors ?? []).filter(({ keyword }) => keyword !== 'if')
  const { instancePath = '', message = 'is malformed', params = {} } = error ?? {}
  const [, ...path] = instancePath.split('/').map(step => step.slice(0, 40))
  const allowed = Array.isArray(params['allowedValues']) ? `: ${params['allowedValues'].join(', ')}` : ''
  return `\`${[root, ...path].join('.')}\` ${message}${allowed}`
}

/** Why a method of the host's own cannot have these params; undefined: it can, or is none of ours. */
export function paramsProblem({ method, params }: Call): string | undefined {
  if (!Object.hasOwn(SHAPES, method)) return undefined
  const validate = validatorOf(method)
  return validate(params) ? undefined : complain(validate, 'params')
}

/** The params of a call of this method, which were checked. */
export const paramsOf = <Name extends keyof ParamsOf>(call: Call, _method: Name): ParamsOf[Name] =>
  call.params as unknown as ParamsOf[Name]

/** Why a client cannot say this about itself; undefined: it can. */
export function clientInfoProblem(info: unknown): string | undefined {
  const validate = validatorOf('clientInfo')
  return validate(info) ? undefined : complain(validate, 'clientInfo')
}
