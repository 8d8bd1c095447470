// Creates definitions from the lists of a server.
import {
  type CallContext,
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type JsonSchema,
  type ResourceDefinition,
  type ToolDefinition,
  ToolError,
} from '../../core/index.ts'
import { isObject, uncheckedSchema } from '../../core/plugin.ts'
import { checkVisible, visibleText, visibleTexts } from '../families/texts/index.ts'
import type { Item, Snapshot } from './lists.ts'
import { passedMeta, safeIcons } from './metadata.ts'
import { isIncluded, isServed, labelOf, promptName, toolName, unknownArguments } from './names.ts'
import type { ArgumentOverride } from './options.ts'
import type { ServerSettings } from './settings.ts'
import { routeUri, serverUri, wrapMetaUris } from './uris.ts'

type ToolAnnotations = NonNullable<ToolDefinition['annotations']>
type Completer = NonNullable<ResourceDefinition['complete']>[string]

/** Calls the server. */
export interface UpstreamClient {
  call(method: string, params: Item, ctx: CallContext, outputSchema?: JsonSchema): Promise<object>
  /** Values of `completion/complete`. */
  complete(ref: Item, argument: Item, context: Item, ctx: CallContext): Promise<{ values: string[] }>
}

type Overrides = Readonly<Record<string, ArgumentOverride>>

const isFixed = (override: ArgumentOverride | undefined) => override !== undefined && 'value' in override

/** Returns the input schema that callers see. */
function overrideInputSchema(schema: Item, overrides: Overrides | undefined): Item {
  if (!overrides || !isObject(schema['properties'])) return schema
  const own = (name: string) => (Object.hasOwn(overrides, name) ? overrides[name] : undefined)
  const properties = Object.entries(schema['properties']).flatMap(([name, property]) => {
    const override = own(name)
    if (!override || isFixed(override)) return override ? [] : [[name, property] as const]
    const { description, name: shown = name } = override
    const changed = {
      ...(isObject(property) && property),
      ...(description !== undefined && { description }),
      ...('default' in override && { default: override.default }),
    }
    return [[shown, changed] as const]
  })
  const { required, ...rest } = schema
  const needed = Array.isArray(required)
    ? (required as unknown[]).flatMap(name => {
        const override = typeof name === 'string' ? own(name) : undefined
        if (isFixed(override) || (override && 'default' in override)) return []
        return [override?.name ?? name]
      })
    : []
  return { ...rest, properties: Object.fromEntries(properties), ...(needed.length > 0 && { required: needed }) }
}

/** Returns the arguments for the server. Callers cannot set fixed arguments, not even under their original names. */
function overrideArguments(args: Item, overrides: Overrides | undefined): Item {
  if (!overrides) return args
  const sent: Record<string, unknown> = { ...args }
  const entries = Object.entries(overrides)
  for (const [name, { name: shown = name }] of entries) {
    delete sent[name]
    delete sent[shown]
  }
  for (const [name, override] of entries) {
    const { name: shown = name } = override
    if (isFixed(override)) sent[name] = override.value
    else if (Object.hasOwn(args, shown)) sent[name] = args[shown]
    else if ('default' in override) sent[name] = override.default
  }
  return sent
}

const text = (value: unknown) => (typeof value === 'string' ? visibleText(value) : undefined)

/** Removes members without a value. */
const present = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Key in keyof Fields]: NonNullable<Fields[Key]>
  }

const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

function annotationsOf(annotations: unknown, own: ToolAnnotations | undefined): ToolAnnotations | undefined {
  if (!isObject(annotations)) return own
  const hints = HINTS.filter(name => typeof annotations[name] === 'boolean').map(name => [name, annotations[name]])
  const title = text(annotations['title'])
  return { ...(title !== undefined && { title }), ...Object.fromEntries(hints), ...own }
}

/** Maximum characters of a URI or template. */
const MAX_URI = 8_192

const variablesOf = (template: string): string[] =>
  [...template.matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map(name => name.replace(/\*$|:\d+$/, '')),
  )

const refersOutside = (schema: unknown): boolean => /"\$(?:ref|dynamicRef)":"(?!#)/.test(JSON.stringify(schema) ?? '')

export const changedError = (kind: 'tool' | 'prompt', server: string) =>
  new ToolError(
    `The definition of this ${kind} at the server "${server}" has changed. An operator must accept the change first.`,
  )

export function createDefiner(settings: ServerSettings, client: UpstreamClient) {
  const { access, maxSchema, meta, http } = settings
  const origin = http && new URL(http.url).origin
  /** Definitions by the JSON of their item, so that unchanged items keep their definitions. */
  let cached = new Map<string, Definition>()
  const common = (item: Item) =>
    present({
      title: text(item['title']),
      description: text(item['description']),
      icons: safeIcons(item['icons'], origin, maxSchema) as never,
      _meta: visibleTexts(wrapMetaUris(settings, passedMeta(item['_meta'], meta))),
      access,
    })

  function defineOneTool(item: Item, name: string): Definition {
    const { overrides, input, output } = settings
    const override = Object.hasOwn(overrides, name) ? overrides[name] : undefined
    const { inputSchema, outputSchema } = visibleTexts({
      inputSchema: isObject(item['inputSchema']) ? item['inputSchema'] : { type: 'object' },
      outputSchema: isObject(item['outputSchema']) ? item['outputSchema'] : undefined,
    })
    const { execution } = item
    if (isObject(execution) && execution['taskSupport'] === 'required')
      throw new Error('it requires tasks, which are not forwarded')
    if (refersOutside([inputSchema, outputSchema])) throw new Error('its schemas reference another document')
    const fixed = Object.entries(override?.arguments ?? {}).filter(([, one]) => isFixed(one))
    const [unknown] = unknownArguments(inputSchema, Object.fromEntries(fixed))
    if (unknown !== undefined) throw new Error(`it has no argument "${unknown}", which \`overrides\` sets to a value`)
    const listed = overrideInputSchema(inputSchema, override?.arguments)
    const mode = override?.output ?? output
    const listedOutput = mode === 'omit' ? undefined : outputSchema
    const checkedOutput = mode === 'check' ? outputSchema : undefined
    return defineTool({
      ...common(item),
      ...present({
        title: override?.title,
        description: override?.description,
        access: override?.access,
        timeout: override?.timeout,
        concurrency: override?.concurrency,
        task: override?.task as ToolDefinition['task'],
        annotations: annotationsOf(item['annotations'], override?.annotations),
      }),
      name: toolName(settings, name),
      input: input === 'check' ? listed : uncheckedSchema({ ...listed }),
      ...(listedOutput && { output: uncheckedSchema(listedOutput) }),
      handler: (args: object, ctx) => {
        const sent = overrideArguments(args as Item, override?.arguments)
        return client.call('tools/call', { name, arguments: sent }, ctx, checkedOutput)
      },
    }) as Definition
  }

  const completer =
    (ref: Item, name: string): Completer =>
    (value, { arguments: given }, ctx) =>
      client.complete(ref, { name, value }, { arguments: given }, ctx)

  function defineOneResource(item: Item, key: 'uri' | 'uriTemplate', canComplete: boolean): Definition {
    const uri = String(item[key])
    checkVisible(uri.slice(0, MAX_URI), `its ${key}`)
    if (uri.length > MAX_URI) throw new Error(`its ${key} has ${uri.length} characters, more than ${MAX_URI}`)
    // A template without a fixed scheme could match the URIs of other toolsets.
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) throw new Error(`its ${key} does not begin with a scheme`)
    const ref = { type: 'ref/resource', uri }
    const completes = canComplete && key === 'uriTemplate'
    const { annotations, size } = item
    return defineResource({
      ...common(item),
      ...present({
        mimeType: text(item['mimeType']),
        size: typeof size === 'number' ? size : undefined,
        annotations: isObject(annotations) ? (visibleTexts(annotations) as object) : undefined,
      }),
      name: text(item['name']) ?? uri,
      [key]: routeUri(settings, uri),
      ...(completes && {
        complete: Object.fromEntries(variablesOf(uri).map(name => [name, completer(ref, name)])),
      }),
      handler: (args, ctx) =>
        client.call('resources/read', { uri: serverUri(settings, String(args['uri'])) }, ctx) as never,
    })
  }

  function defineOnePrompt(item: Item, name: string, canComplete: boolean): Definition {
    const list = Array.isArray(item['arguments']) ? item['arguments'].filter(isObject) : []
    const ref = { type: 'ref/prompt', name }
    const args = list.map(argument => {
      const own = checkVisible(String(argument['name']), 'the argument')
      const fields = { title: text(argument['title']), description: text(argument['description']) }
      const required = argument['required'] === true || undefined
      return [own, present({ ...fields, required, complete: canComplete ? completer(ref, own) : undefined })] as const
    })
    return definePrompt({
      ...common(item),
      name: promptName(settings, name),
      arguments: Object.fromEntries(args),
      handler: (args: object, ctx) => client.call('prompts/get', { name, arguments: args }, ctx) as never,
    })
  }

  const defineChangedTool = (name: string): Definition =>
    defineTool({
      name: toolName(settings, name),
      description: 'Withheld: its definition at the server has changed.',
      ...(access !== undefined && { access }),
      input: uncheckedSchema({ type: 'object' }),
      handler: () => {
        throw changedError('tool', settings.name)
      },
    }) as Definition

  /**
   * `canComplete`: the server supports completion. `changedTools`: names of withheld tools. Returns the definitions, and
   * the left-out items with the reasons.
   */
  return function define(snapshot: Snapshot, canComplete: boolean, changedTools: readonly string[] = []) {
    const next = new Map<string, Definition>()
    const omitted = new Map<string, string>()
    const definitions: Definition[] = []
    function add(kind: string, name: string, item: Item, make: () => Definition) {
      try {
        const { icons: _, ...rest } = item
        const size = JSON.stringify(rest).length
        if (size > maxSchema) throw new Error(`it has ${size} characters; the limit is ${maxSchema} (maxSchema)`)
        const key = `${kind} ${name} ${canComplete} ${JSON.stringify(item)}`
        const definition = cached.get(key) ?? make()
        next.set(key, definition)
        definitions.push(definition)
      } catch (error) {
        omitted.set(labelOf(kind, name), (error as Error).message)
      }
    }
    for (const item of snapshot.tools) {
      const { name } = item
      if (typeof name !== 'string' || name === '') omitted.set('tool', 'it has no name')
      else if (isIncluded(settings, name)) add('tool', name, item, () => defineOneTool(item, name))
    }
    for (const [key, list] of [
      ['uri', snapshot.resources],
      ['uriTemplate', snapshot.resourceTemplates],
    ] as const) {
      for (const item of list) {
        const uri = item[key]
        if (typeof uri !== 'string') omitted.set('resource', `it has no ${key}`)
        else if (isServed(settings.resources, uri))
          add('resource', uri, item, () => defineOneResource(item, key, canComplete))
      }
    }
    for (const item of snapshot.prompts) {
      const { name } = item
      if (typeof name !== 'string' || name === '') omitted.set('prompt', 'it has no name')
      else if (isServed(settings.prompts, name))
        add('prompt', name, item, () => defineOnePrompt(item, name, canComplete))
    }
    definitions.push(...changedTools.map(defineChangedTool))
    cached = next
    return { definitions, omitted }
  }
}
