// JSON Schemas of tools, resources, prompts and plugins, matching the types in core/mcp/define.ts and
// core/kernel/define-plugin.ts. Keys that plugins add to tools are in declared-keys.ts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { closed, count, flag, icon, isolate, list, mediaType, positiveDuration, text } from './schema-parts.ts'

const callable = (description: string): JsonSchema => ({ callable: true, description })
const words = (description: string): JsonSchema => ({ type: 'string', description })

const common = {
  name: text('What it is called; unique on a route.'),
  title: words('Name for people.'),
  description: words('For the model: what it is for.'),
  icons: list(icon, 'Icons for clients: { src, mimeType, sizes, theme }.'),
  _meta: { type: 'object', description: 'For clients; any key.' },
  access: text("A policy's name, a scope or a role that the caller needs."),
  visibility: { enum: ['listed'], description: 'Shown in lists to callers who may not use it.' },
  handler: callable('What it does.'),
}

const toolAnnotations = closed({
  title: words('Name for people.'),
  readOnlyHint: flag('It changes nothing.'),
  destructiveHint: flag('It may destroy something.'),
  idempotentHint: flag('Calling it twice does what calling it once does.'),
  openWorldHint: flag('It reaches beyond this server.'),
})

const annotations = closed({
  audience: list({ enum: ['user', 'assistant'] }, 'Whom it is for.'),
  priority: { type: 'number', minimum: 0, maximum: 1, description: '1 is effectively required.' },
  lastModified: {
    type: 'string',
    pattern: '^\\d{4}-\\d{2}-\\d{2}(T.+)?$',
    patternErrorMessage: "an ISO 8601 time such as '2026-01-31T12:00:00Z'",
    description: 'ISO 8601.',
  },
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
      concurrency: count('How many calls run at a time.'),
      isolate,
    },
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
      size: { type: 'number', minimum: 0, description: 'Bytes.' },
      annotations,
      complete: {
        type: 'object',
        additionalProperties: callable("Suggests values of the template's variable."),
      },
      list: callable('Lists resources of the template for the caller.'),
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
          description: words('What it is for.'),
          required: flag('Whether it must be given.'),
          complete: callable('Suggests values.'),
        }),
      },
    },
    REQUIRED,
  ),
} as const satisfies Record<string, JsonSchema>

export const PLUGIN_SCHEMA = closed(
  {
    options: { type: 'object', description: 'The JSON Schema of its options.' },
    needs: list(text('A capability.'), 'What another plugin must provide.'),
    provides: list(text('A capability.'), 'What it provides to others.'),
    sections: {
      type: 'object',
      additionalProperties: { type: 'object', description: 'The JSON Schema of a section.' },
      description: 'Top-level keys of the config that it shares with other plugins.',
    },
    routeKey: text('The key of a route that holds its options there.'),
    storeKey: text('The key of `store` that holds its options.'),
    toolKeys: {
      type: 'object',
      additionalProperties: { type: 'object', description: 'The JSON Schema of the value.' },
      description: 'Keys of tools that it reads.',
    },
    context: { type: 'object', description: 'Members of `ctx`, each with its value on routes without the plugin.' },
    setup: callable('What it does.'),
    examine: callable('What it finds out, without a host, about what its options lead to.'),
    underTest: callable('How it is tested with users that are made up.'),
  },
  { required: ['options', 'setup'] },
)
