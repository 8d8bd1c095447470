// Reads the request body of an operation.

import type { JsonSchema } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { visibleText } from '../families/texts/index.ts'
import { type Api, type Candidate, childOf, readObject } from './api.ts'
import type { Found } from './document/references.ts'
import { chooseMediaType } from './media-types.ts'
import type { ParameterStyle, PropertyEncoding, RequestBody } from './operation.ts'

/** A body without its arguments. */
export interface ReadBody extends Omit<RequestBody, 'from'> {
  readonly description?: string
  /** The properties of an object that can become separate arguments, with the required ones. */
  readonly object?: {
    readonly properties: Readonly<Record<string, JsonSchema | boolean>>
    readonly required: readonly string[]
  }
}

const BASE64 = { type: 'string', contentEncoding: 'base64' } as const

export function readBody(api: Api, { operation, place }: Candidate, uses: Set<string>): ReadBody | undefined {
  const requestBody = childOf({ value: operation, place }, 'requestBody')
  if (requestBody.value === undefined) return undefined
  const body = api.references.follow(requestBody)
  const { description, required } = readObject(body, 'a request body')
  const content = childOf(body, 'content')
  const chosen = chooseMediaType(Object.keys(readObject(content, '`content`')))
  if (!chosen) return undefined
  const { key, kind, mediaType } = chosen
  const media = api.references.follow(childOf(content, key))
  const schema = childOf(media, 'schema')
  const about = {
    kind,
    mediaType,
    required: required === true,
    ...(typeof description === 'string' && { description: visibleText(description) }),
    encoding: readEncoding(api, childOf(media, 'encoding')),
  }
  const none = { ...about, binary: new Set<string>() }
  if (kind === 'binary') return { ...none, schema: BASE64 }
  if (kind === 'text') return { ...none, schema: { type: 'string' } }
  if (schema.value === undefined) return { ...none, schema: {} }
  const object = readObjectSchema(api, schema)
  const binary = kind === 'multipart' && object ? findBinary(api, object) : new Set<string>()
  // The schema of an object whose properties become arguments is converted in place, without its `$ref`.
  const own = new Set<string>()
  const converted = api.request.convert(object ?? schema, own)
  for (const name of own) uses.add(name)
  const whole = typeof converted === 'boolean' ? {} : converted
  if (!object || !isObject(whole['properties'])) return { ...about, binary, schema: whole }
  const { properties, required: names } = whole
  return {
    ...about,
    binary,
    schema: whole,
    object: {
      properties: properties as Record<string, JsonSchema | boolean>,
      required: Array.isArray(names) ? names.map(String) : [],
    },
  }
}

const COMPOSED = ['allOf', 'anyOf', 'oneOf', 'not', 'if', 'patternProperties', 'unevaluatedProperties', 'propertyNames']

/** Returns the schema if it is an object with known properties only. */
function readObjectSchema(api: Api, schema: Found): Found | undefined {
  const target = api.references.follow(schema)
  const { value } = target
  if (!isObject(value) || !isObject(value['properties']) || Object.keys(value['properties']).length === 0)
    return undefined
  const { type = 'object', additionalProperties = false, nullable } = value
  if (type !== 'object' || additionalProperties !== false || nullable === true) return undefined
  return COMPOSED.some(keyword => keyword in value) ? undefined : target
}

/** Returns properties of a multipart body whose parts are bytes. */
function findBinary(api: Api, object: Found): Set<string> {
  const properties = childOf(object, 'properties')
  const names = Object.keys(isObject(properties.value) ? properties.value : {})
  return new Set(names.filter(name => isBinary(api, childOf(properties, name), true)))
}

function isBinary(api: Api, property: Found, isOuter: boolean): boolean {
  const found = api.references.follow(property)
  const { value } = found
  if (!isObject(value)) return false
  const { type, format, contentMediaType, contentEncoding } = value
  if (type === 'array' && isOuter) return isBinary(api, childOf(found, 'items'), false)
  if (format === 'binary') return true
  const isRaw = contentMediaType !== undefined && contentEncoding === undefined
  return isRaw && (type === undefined || type === 'string') && !/^text\/|json$/.test(`${contentMediaType}`)
}

const isStyle = (value: unknown): value is ParameterStyle =>
  ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'].some(style => style === value)

function readEncoding(api: Api, encoding: Found): ReadonlyMap<string, PropertyEncoding> {
  if (!isObject(encoding.value)) return new Map()
  return new Map(
    Object.keys(encoding.value).map(name => {
      const { contentType, style, explode, allowReserved } = readObject(
        api.references.follow(childOf(encoding, name)),
        'an encoding',
      )
      return [
        name,
        {
          ...(typeof contentType === 'string' && { contentType }),
          ...(isStyle(style) && { style }),
          ...(typeof explode === 'boolean' && { explode }),
          ...(typeof allowReserved === 'boolean' && { allowReserved }),
        },
      ]
    }),
  )
}
