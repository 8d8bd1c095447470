// JSON Schemas of tools, resources, prompts and plugins, matching the types in core/mcp/define.ts and
// core/kernel/define-plugin.ts.
import type { JsonSchema } from '../mcp/protocol.ts'
import { closed, count, flag, icon, isolate, list, mediaType, positiveDuration, text } from './schema-parts.ts'

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
  lastModified: {
    type: 'string',
    pattern: '^\\d{4}-\\d{2}-\\d{2}(T.+)?$',
    patternErrorMessage: "an ISO 8601 time such as '2026-01-31T12:00:00Z'",
    description: 'ISO 8601.',
  },
})

const taskUse = { enum: ['optional', 'required'] }

const PORT = '(?::(?:[1-9]\\d{0,3}|[1-5]\\d{4}|6[0-4]\\d{3}|65[0-4]\\d{2}|655[0-2]\\d|6553[0-5]))?'
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?'
/** Link-local addresses, where clouds serve instance credentials. */
const NOT_LINK_LOCAL = '(?!169\\.254\\.)'

/**
 * Origins in a content security policy: no path, and no characters that end the directive. A wildcard needs two labels, so
 * `*.com` is refused; suffixes such as `co.uk` are not recognised.
 */
const origins = (description: string) =>
  list(
    {
      type: 'string',
      pattern: `^(?:https?|wss?)://${NOT_LINK_LOCAL}(?:\\*\\.(?=[^.:]+\\.))?${LABEL}(?:\\.${LABEL})*${PORT}$`,
      patternErrorMessage:
        'an origin, such as https://api.acme.example or https://*.acme.example (not all of a top-level name)',
    },
    description,
  )
const asked = closed({})

const app = closed(
  {
    name: text('What it is called; unique on a route.', {
      pattern: '^[a-z0-9][a-z0-9._-]{0,63}$',
      patternErrorMessage: 'lower-case letters, digits and . _ -, at most 64',
    }),
    title: words('Name for people.'),
    description: words('What it shows.'),
    icons: list(icon, 'Icons that clients may show.'),
    html: text('Its page, or the file that has it.'),
    module: text('The script that its page is bundled of.'),
    csp: closed({
      connectDomains: origins('Origins that it may connect to.'),
      resourceDomains: origins('Origins that it may have scripts, styles, images and fonts from.'),
      frameDomains: origins('Origins of frames in it.'),
      baseUriDomains: origins('Origins of its base.'),
    }),
    permissions: closed({ camera: asked, microphone: asked, geolocation: asked, clipboardWrite: asked }),
    domain: text('The origin that it wants for itself.', {
      pattern: '^[\\x21-\\x7e]+$',
      patternErrorMessage: 'a name without spaces or line ends',
    }),
    prefersBorder: flag('Whether it has a border.'),
  },
  { required: ['name'], description: 'The app that shows its results to people.' },
)
const taskParts = {
  use: taskUse,
  retry: { enum: ['safe'] },
  before: callable('Gives the arguments of the task.'),
}

const REQUIRED = { required: ['name', 'handler'] }

export const DEFINITION_SCHEMAS = {
  tool: closed(
    {
      ...common,
      annotations: toolAnnotations,
      input: { description: 'JSON Schema or Standard Schema of the arguments.' },
      output: { description: 'JSON Schema or Standard Schema of the result.' },
      timeout: positiveDuration('How long one call may take.'),
      concurrency: count('How many calls run at a time.'),
      isolate,
      task: {
        anyOf: [taskUse, closed(taskParts, { required: ['use'] })],
        description: 'Calls become tasks for clients that know them.',
      },
      app,
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
      mimeType: mediaType('Its media type.'),
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
    setup: callable('What it does.'),
    examine: callable('What it finds out, without a host, about what its options lead to.'),
    underTest: callable('How it is tested with users that are made up.'),
  },
  { required: ['options', 'setup'] },
)
