// Compiles definitions for lists, calls and access decisions.

import { createHash } from 'node:crypto'
import { errorText, StartError } from '../../http/errors.ts'
import { normalTemplate, normalUri } from '../normal-uri.ts'
import { SchemaError } from '../schema/check-schema.ts'
import {
  advertisedSchema,
  type CompiledSchema,
  compileOutput,
  compileSchema,
  isUnchecked,
  type OutputSchema,
} from '../schema/schema.ts'
import { parseDuration } from '../units.ts'
import { collectHeaderParams, type HeaderParam } from '../wire/header-params.ts'
import {
  type Definition,
  kindOf,
  labelOf,
  type PromptDefinition,
  type ResourceDefinition,
  type ToolDefinition,
} from './define.ts'
import { DEFINITION_SCHEMAS } from './definition-schema.ts'
import { type IsolationLimits, isolateError, resolveIsolate } from './isolation-limits.ts'
import { type CompiledUriTemplate, compileUriTemplate } from './uri-template.ts'

interface Item<D extends Definition> {
  readonly definition: D
  readonly key: string
  readonly wire: Readonly<Record<string, unknown>>
  /** Digest of the definition and the source of its handler; the same on every node of a release. */
  readonly digest: string
}
export interface ToolItem extends Item<ToolDefinition> {
  readonly kind: 'tools'
  readonly input: CompiledSchema
  /** Undefined without an output schema, and for an unchecked schema. */
  readonly output: OutputSchema | undefined
  readonly headerParams: readonly HeaderParam[]
  readonly timeout: number | undefined
  readonly concurrency: number | undefined
  readonly isolate: IsolationLimits | undefined
  readonly keys: readonly string[]
}
export interface ResourceItem extends Item<ResourceDefinition> {
  readonly kind: 'resources'
  readonly template: CompiledUriTemplate | undefined
  readonly normalUri: string
  readonly normalTemplate: CompiledUriTemplate | undefined
}
export interface PromptItem extends Item<PromptDefinition> {
  readonly kind: 'prompts'
}
/** A compiled definition. */
export type CatalogItem = ToolItem | ResourceItem | PromptItem
/** The protocol's list names. */
export type ItemKind = CatalogItem['kind']

const defined = (fields: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

const digestOf = (wire: object, definition: Definition) =>
  createHash('sha256')
    .update(`${JSON.stringify(wire)}\n${definition.handler}`)
    .digest('base64url')
    .slice(0, 22)

export const isHostKey = (key: string) => Object.hasOwn(DEFINITION_SCHEMAS.tool.properties, key)

function compileTool(definition: ToolDefinition): ToolItem {
  const { name, title, description, icons, annotations, _meta, timeout, concurrency } = definition
  const isolate = resolveIsolate(definition.isolate)
  const fault = isolate && isolateError(definition)
  if (fault !== undefined) throw new Error(`it has \`isolate\`, but ${fault}`)
  const input = compileSchema(definition.input, 'input')
  const listedOutput = isUnchecked(definition.output) ? definition.output : undefined
  const output = listedOutput || !definition.output ? undefined : compileOutput(definition.output)
  const outputSchema = listedOutput ?? (output && advertisedSchema(output.json))
  const schemas = { inputSchema: advertisedSchema(input.json), outputSchema }
  const wire = defined({ name, title, description, ...schemas, annotations, icons, _meta })
  return {
    kind: 'tools',
    definition,
    key: name,
    wire,
    digest: digestOf(wire, definition),
    input,
    output,
    headerParams: collectHeaderParams(input.json),
    timeout: timeout === undefined ? undefined : parseDuration(timeout),
    concurrency,
    isolate,
    keys: Object.keys(definition).filter(key => !isHostKey(key) && Reflect.get(definition, key) !== undefined),
  }
}

function compileResource(definition: ResourceDefinition): ResourceItem {
  const { uri, uriTemplate, name, title, description, mimeType, size, icons, annotations, _meta } = definition
  const key = uri ?? uriTemplate
  if (key === undefined || (uri !== undefined && uriTemplate !== undefined)) {
    throw new Error('give it either `uri` or `uriTemplate`')
  }
  if (uri !== undefined && !URL.canParse(uri)) throw new Error(`its uri "${uri}" is not an absolute URI`)
  const template = uriTemplate === undefined ? undefined : compileUriTemplate(uriTemplate)
  if (definition.list && !template) throw new Error('`list` needs a `uriTemplate`')
  const stray = Object.keys(definition.complete ?? {}).find(name => !template?.variables.includes(name))
  if (stray !== undefined) throw new Error(`\`complete.${stray}\` names no variable of its uriTemplate`)
  const wire = defined({ uri, uriTemplate, name, title, description, mimeType, size, annotations, icons, _meta })
  return {
    kind: 'resources',
    definition,
    key,
    wire,
    digest: digestOf(wire, definition),
    template,
    normalUri: uri === undefined ? key : normalUri(uri),
    normalTemplate: uriTemplate === undefined ? undefined : compileUriTemplate(normalTemplate(uriTemplate)),
  }
}

function compilePrompt(definition: PromptDefinition): PromptItem {
  const { name, title, description, icons, _meta } = definition
  const list = Object.entries(definition.arguments ?? {}).map(([argument, { title, description, required }]) =>
    defined({ name: argument, title, description, required }),
  )
  const wire = defined({ name, title, description, arguments: list.length > 0 ? list : undefined, icons, _meta })
  return { kind: 'prompts', definition, key: name, wire, digest: digestOf(wire, definition) }
}

export type ProblemsOf = (definition: Definition) => readonly string[]

const compiled = new WeakMap<Definition, CatalogItem>()

export function compileDefinition(definition: Definition, where: string, problemsOf: ProblemsOf): CatalogItem {
  const known = compiled.get(definition)
  if (known) return known
  const kind = kindOf(definition)
  if (kind === undefined) {
    throw new StartError(
      'MH1102',
      `${where}: not a definition; make it with defineTool, defineResource or definePrompt`,
      { exitCode: 2 },
    )
  }
  const label = `${where}: ${labelOf(definition)}`
  const faults = problemsOf(definition)
  if (faults.length > 0) throw new StartError('MH1104', `${label}: ${faults.join('\n')}`, { of: definition })
  try {
    const item =
      kind === 'tool'
        ? compileTool(definition as ToolDefinition)
        : kind === 'resource'
          ? compileResource(definition as ResourceDefinition)
          : compilePrompt(definition as PromptDefinition)
    compiled.set(definition, item)
    return item
  } catch (cause) {
    const at = cause instanceof SchemaError ? cause.at : []
    throw new StartError('MH1105', `${label}: ${errorText(cause)}`, { cause, of: definition, at })
  }
}
