// What a tool, a resource, a prompt and a plugin may say, as JSON Schema: the same shapes as in core/mcp/define.ts and
// core/kernel/define-plugin.ts, for run time. What `input` and `output` are is for core/mcp/schema/schema.ts to say.
import type { JsonSchema } from '../mcp/protocol.ts'
import { closed, count, duration, flag, icon, isolate, list, text } from './schema-parts.ts'

const callable = (description: string): JsonSchema => ({ callable: true, description })
const words = (description: string): JsonSchema => ({ type: 'string', description })

const common = {
  name: text('What it is called; unique on a route.'),
  title: words('Name for people.'),
  description: words('For the model: what it is for.'),
  icons: list(icon, 'Icons that clients may show.'),
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
  lastModified: words('ISO 8601.'),
})

const taskUse = { enum: ['optional', 'required'] }

const taskParts = {
  use: taskUse,
  retry: { enum: ['safe'] },
  before: callable('Gives the arguments of the task.'),
}

const REQUIRED = { required: ['name', 'handler'] }

/** By what `kindOf` answers. */
export const DEFINITION_SCHEMAS = {
  tool: closed(
    {
      ...common,
      annotations: toolAnnotations,
      input: { description: 'JSON Schema or Standard Schema of the arguments.' },
      output: { description: 'JSON Schema or Standard Schema of the result.' },
      timeout: duration('How long one call may take.'),
      concurrency: count('How many calls run at a time.'),
      isolate,
      task: {
        anyOf: [taskUse, closed(taskParts, { required: ['use'] })],
        description: 'Calls become tasks for clients that know them.',
      },
      app: { description: 'The app that shows its results to people.' },
    },
    REQUIRED,
  ),
  resource: closed(
    {
      ...common,
      uri: text('One resource.'),
      uriTemplate: text('A family of resources (RFC 6570).'),
      mimeType: words('Its media type.'),
      size: { type: 'number', minimum: 0, description: 'Bytes.' },
      annotations,
      complete: {
        type: 'object',
        additionalProperties: callable("Suggests values of the template's variable."),
      },
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

/** What definePlugin takes. */
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
    setup: callable('What it does.'),
    examine: callable('What it finds out, without a host, about what its options lead to.'),
    underTest: callable('How it is tested with users that are made up.'),
  },
  { required: ['options', 'setup'] },
)
