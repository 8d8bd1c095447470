// JSON Schemas of tools, resources, prompts and plugins, and of the extensions and tool keys that plugins add. They match the types in
// core/mcp and core/kernel/define-plugin.ts. Keys that plugins add to tools are in declared-keys.ts.

import {
  closed,
  count,
  flag,
  icon,
  isolate,
  list,
  mapOf,
  mediaType,
  positiveDuration,
  text,
  words,
} from '../schema/schema-parts.ts'
import type { JsonSchema } from '../wire/protocol.ts'
import type { HostTool } from './define.ts'

const callable = (description: string): JsonSchema => ({ callable: true, description })

const common = {
  name: text('Name, unique on a route.'),
  title: words('Name for people.'),
  description: words('Description for the model.'),
  icons: list(icon, 'Icons for clients: { src, mimeType, sizes, theme }.'),
  _meta: { type: 'object', description: 'Metadata for clients, with any keys.' },
  access: text('The policy, scope or role that callers need.'),
  visibility: { enum: ['listed'], description: 'Listed also for callers without access.' },
  handler: callable('Handles a call.'),
}

const toolAnnotations = closed({
  title: words('Name for people.'),
  readOnlyHint: flag('The tool changes nothing.'),
  destructiveHint: flag('The tool can delete or overwrite data.'),
  idempotentHint: flag('A repeated call has no further effect.'),
  openWorldHint: flag('The tool accesses systems outside this server.'),
})

const annotations = closed({
  audience: list({ enum: ['user', 'assistant'] }, 'Intended readers.'),
  priority: { type: 'number', minimum: 0, maximum: 1, description: 'Importance from 0 to 1 (effectively required).' },
  lastModified: words('Time of the last change (ISO 8601).', {
    pattern: '^\\d{4}-\\d{2}-\\d{2}(T.+)?$',
    patternErrorMessage: "an ISO 8601 time such as '2026-01-31T12:00:00Z'",
  }),
})

const REQUIRED = { required: ['name', 'handler'] }

export const DEFINITION_SCHEMAS = {
  tool: closed(
    {
      ...common,
      annotations: toolAnnotations,
      input: { description: 'JSON Schema or Standard Schema of the arguments.' },
      output: { description: 'JSON Schema or Standard Schema of the result.' },
      timeout: positiveDuration('Time limit of a call.'),
      concurrency: count('Maximum concurrent calls.'),
      isolate,
    } satisfies Record<keyof HostTool | 'handler', JsonSchema>,
    REQUIRED,
  ),
  resource: closed(
    {
      ...common,
      uri: text('One resource.', {
        pattern: '^[^{}]*$',
        patternErrorMessage: 'a URI without braces; a template is `uriTemplate`',
      }),
      uriTemplate: text('A family of resources (RFC 6570).', {
        pattern: '^(?!.*\\$\\{).*\\{',
        patternErrorMessage: "a template with a variable, such as 'notes://{id}', without '${'; one resource is `uri`",
      }),
      mimeType: mediaType('Media type of the contents.'),
      size: { type: 'number', minimum: 0, description: 'Size in bytes.' },
      annotations,
      complete: { type: 'object', additionalProperties: callable("Suggests values of the template's variable.") },
      list: callable('Lists resources of the template.'),
    },
    REQUIRED,
  ),
  prompt: closed(
    {
      ...common,
      arguments: {
        type: 'object',
        additionalProperties: closed({
          title: words('Name for people.'),
          description: words('Description of the argument.'),
          required: flag('Whether the argument is required.'),
          complete: callable('Suggests values.'),
        }),
      },
    },
    REQUIRED,
  ),
} as const satisfies Record<string, JsonSchema>

export const PLUGIN_SCHEMA = closed(
  {
    options: { type: 'object', description: 'JSON Schema of the options.' },
    needs: list(text('A capability.'), 'Capabilities that another plugin must provide.'),
    provides: list(text('A capability.'), 'Capabilities that the plugin provides.'),
    sections: mapOf(
      { type: 'object', description: 'The JSON Schema of a section.' },
      'Top-level config keys, shared with other plugins.',
    ),
    routeKey: text('Key of a route for the options of the plugin.'),
    storeKey: text('Key of `store` for the options of the plugin.'),
    toolKeys: mapOf(
      { type: 'object', description: 'The JSON Schema of the value.' },
      'Keys of tools that the plugin reads.',
    ),
    context: { type: 'object', description: 'Members of `ctx`, each with its value on routes without the plugin.' },
    setup: callable('Sets up the plugin.'),
    examine: callable('Checks the options without a host.'),
    underTest: callable('Authenticates invented users in tests.'),
  },
  { required: ['options', 'setup'] },
)

const byName = (value: JsonSchema, more?: JsonSchema) => ({ type: 'object', additionalProperties: value, ...more })

const JSON_VALUE = { $ref: '#/$defs/json' }

export const EXTENSION_SCHEMA = closed(
  {
    settings: byName(JSON_VALUE),
    methods: byName(callable('Handles requests.'), { propertyNames: { pattern: '^(?!notifications/).' } }),
    nameHeaders: byName(text('The name of a parameter.')),
    results: byName(list(text('A result type.'), 'Result types of a method.')),
    listenFilters: byName(callable('Reads a filter.')),
    clientMustDeclare: flag('Whether clients must declare the extension.'),
  },
  {
    $defs: {
      json: {
        type: ['null', 'boolean', 'number', 'string', 'array', 'object'],
        items: JSON_VALUE,
        additionalProperties: JSON_VALUE,
      },
    },
  },
)

export const TOOL_KEY_SCHEMA = closed({
  onCall: callable('Wraps the handler.'),
  meta: callable('Returns entries of `_meta`.'),
  resources: callable('Returns resources.'),
  digest: callable('Returns a digest for the lock.'),
  check: callable('Returns the reason why a tool cannot be served.'),
})
