// Reads one operation of a document as a tool: its request, schemas, name and description.

import type { JsonSchema } from '../../core/index.ts'
import { isObject } from '../../core/plugin.ts'
import { visibleText } from '../families/texts/index.ts'
import { type Api, type Candidate, childOf, defaultId, readObject, readSecurity } from './api.ts'
import { mapArguments } from './arguments.ts'
import { DocumentError } from './document/place.ts'
import { findJsonType } from './media-types.ts'
import type { Operation, SecurityRequirement } from './operation.ts'
import type { Source } from './options.ts'
import { readBody } from './read-body.ts'
import { readParameters } from './read-parameters.ts'
import type { Definitions } from './schema/definitions.ts'
import { type FittedSchema, fitSchema } from './schema/fit-schema.ts'
import { findOverrideKey, isResource } from './select.ts'
import { readBaseUrl } from './servers.ts'

/** Plain data, without references to the document, which can be large. */
export type ApiTool = ReturnType<typeof readTool>

/** Maximum characters of a description. */
const MAX_DESCRIPTION = 2_048

/** Reads a tool. Throws a DocumentError for an operation that cannot be a tool, and a MissingDocument error. */
export function readTool(api: Api, candidate: Candidate, source: Source, name: string, maxSchema: number) {
  const key = findOverrideKey(candidate, source)
  const override = key === undefined ? undefined : source.overrides?.[key]
  const uses = new Set<string>()
  const isCredential = credentialNames(api)
  const parameters = readParameters(api, candidate, uses).filter(one => !isCredential.has(`${one.in} ${one.name}`))
  const body = readBody(api, candidate, uses)
  const args = mapArguments(parameters, body, source.arguments, override?.arguments)
  const { required, values, unknownArguments } = args
  const input = fitTo(api.request, args.input, uses, maxSchema)
  if (!input)
    throw new DocumentError(
      candidate.place,
      `the schema of its arguments has more than ${maxSchema} bytes: raise \`maxSchema\``,
    )
  const success = findSuccess(api, candidate)
  const outputMode = override?.output ?? source.output
  const output = outputMode === 'omit' ? undefined : createOutput(api, success, maxSchema)
  const pathArguments = args.parameters.filter(one => one.in === 'path' && required.includes(one.argument))
  const operation: Operation = {
    id: candidate.id,
    method: candidate.method,
    path: candidate.path,
    baseUrl: readBaseUrl(api, candidate, source),
    parameters: args.parameters,
    ...(args.body && { body: args.body }),
    security: readSecurity(api, candidate).map(requirement => omitSent(requirement, api, source)),
    accepts: success.flatMap(({ types }) => types),
    schemas: (input.schema['$defs'] ?? {}) as Readonly<Record<string, JsonSchema>>,
  }
  return {
    name,
    description: override?.description ?? createDescription(candidate),
    input,
    /** The output schema, listed for `pass` and `check`. */
    ...(output && { output }),
    outputMode,
    /** The key in `overrides`. */
    override: key,
    values,
    /** The required arguments of an operation that is also a resource. All are in the path. */
    ...(isResource(candidate, source) && pathArguments.length === required.length && { pathArguments }),
    unknownArguments,
    operation,
  }
}

const fitTo = (definitions: Definitions, schema: JsonSchema, uses: ReadonlySet<string>, maxSchema: number) =>
  fitSchema(schema, definitions.reachedFrom(uses), maxSchema)

const credentialNames = ({ securitySchemes }: Api): ReadonlySet<string> =>
  new Set(
    [...securitySchemes.values()].flatMap(scheme => (scheme.type === 'apiKey' ? [`${scheme.in} ${scheme.name}`] : [])),
  )

/** Returns the requirement without schemes whose header is set by the options. */
function omitSent(requirement: SecurityRequirement, { securitySchemes }: Api, source: Source): SecurityRequirement {
  const sent = new Set([...Object.keys(source.headers ?? {}), ...source.forwardHeaders].map(name => name.toLowerCase()))
  const headerOf = (name: string) => {
    const scheme = securitySchemes.get(name)
    if (scheme?.type === 'apiKey') return scheme.in === 'header' ? scheme.name.toLowerCase() : undefined
    return scheme?.type === 'mutualTLS' ? undefined : 'authorization'
  }
  return new Map([...requirement].filter(([name]) => !sent.has(headerOf(name) ?? '')))
}

interface Success {
  readonly content: ReturnType<typeof childOf>
  readonly types: readonly string[]
}

/** Returns the successful responses, lowest status first. */
function findSuccess(api: Api, { operation, place }: Candidate): Success[] {
  const responses = childOf({ value: operation, place }, 'responses')
  if (!isObject(responses.value)) return []
  const statuses = Object.keys(responses.value).filter(status => /^2(?:\d\d|XX)$/i.test(status))
  const named = statuses.length > 0 ? statuses.sort() : Object.keys(responses.value).filter(key => key === 'default')
  return named.flatMap(status => {
    const content = childOf(api.references.follow(childOf(responses, status)), 'content')
    return isObject(content.value) ? [{ content, types: Object.keys(content.value) }] : []
  })
}

/** Returns the schema of the first JSON response. */
function createOutput(api: Api, success: readonly Success[], maxSchema: number): FittedSchema | undefined {
  for (const { content, types } of success) {
    const type = findJsonType(types)
    if (type === undefined) continue
    const schema = childOf(api.references.follow(childOf(content, type)), 'schema')
    if (schema.value === undefined) return undefined
    const uses = new Set<string>()
    const converted = api.response.convert(schema, uses)
    return typeof converted === 'boolean' ? undefined : fitTo(api.response, converted, uses, maxSchema)
  }
  return undefined
}

function createDescription(candidate: Candidate): string {
  const { summary, description, deprecated } = readObject(
    { value: candidate.operation, place: candidate.place },
    'an operation',
  )
  const [short, long] = [summary, description].map(text => (typeof text === 'string' ? text.trim() : ''))
  const texts = [short && !long?.startsWith(short) ? short : '', long, deprecated === true ? 'Deprecated.' : '']
  const text = visibleText(texts.filter(Boolean).join('\n\n')) || defaultId(candidate)
  return text.length <= MAX_DESCRIPTION ? text : `${text.slice(0, MAX_DESCRIPTION - 1).trimEnd()}…`
}
