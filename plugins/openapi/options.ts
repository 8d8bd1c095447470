// The options of `plugins.openapi`.
import type { JsonSchema, Typed } from '../../core/index.ts'
import { DURATION_PATTERN, type OptionsOf, SIZE_PATTERN } from '../../core/plugin.ts'
import { SECRET, type SecretSource, UPSTREAM_AUTH } from '../families/credentials/index.ts'
import type { Credential } from './credentials.ts'

const text = <const D extends string>(description: D) => ({ type: 'string', minLength: 1, description }) as const
const texts = <const D extends string>(description: D) =>
  ({ type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, description }) as const
const flag = <const D extends string>(description: D) => ({ type: 'boolean', description }) as const
const duration = <const D extends string>(description: D) =>
  ({
    type: ['string', 'number'],
    pattern: `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`,
    exclusiveMinimum: 0,
    description,
  }) as const
const size = <const D extends string>(description: D) =>
  ({
    type: ['string', 'number'],
    pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
    exclusiveMinimum: 0,
    description,
  }) as const

export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const
const method = { enum: METHODS, description: 'The HTTP method.' } as const

const filter = {
  anyOf: [
    text('A glob for the operationId, or for the method and path: `GET /pets/*`.'),
    {
      title: 'OperationFilter',
      type: 'object',
      additionalProperties: false,
      minProperties: 1,
      description: 'All that is given must match.',
      properties: {
        tag: text('A glob for one of its tags.'),
        path: text('A glob for the path template; `*` also matches slashes.'),
        method,
        operation: text('A glob for the operationId, or for the method and path.'),
        deprecated: flag('Whether the operation is deprecated.'),
      },
    },
  ],
} as const
const filters = <const D extends string>(description: D) => ({ type: 'array', items: filter, description }) as const

const output = {
  enum: ['omit', 'pass', 'check'],
  description:
    'The output schema of tools. `omit`: none. `pass`: listed, not checked. `check`: listed, and a response that does not fit is an error.',
} as const

const override = {
  title: 'ToolOverride',
  type: 'object',
  additionalProperties: false,
  properties: {
    name: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,128}$', description: 'The name of the tool, without prefix.' },
    title: text('The title of the tool.'),
    description: text('The description of the tool.'),
    annotations: {
      type: 'object',
      additionalProperties: false,
      description: 'Replaces the hints that follow from the HTTP method.',
      properties: {
        title: text('A title for people.'),
        readOnlyHint: flag('The tool changes nothing.'),
        destructiveHint: flag('The tool can destroy data.'),
        idempotentHint: flag('A repeated call has no further effect.'),
        openWorldHint: flag('The tool acts on things outside of the API.'),
      },
    },
    access: text('The required policy, scope or role.'),
    arguments: {
      type: 'object',
      description: 'By argument name; with grouped arguments `query.limit`.',
      additionalProperties: {
        title: 'ArgumentOverride',
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        properties: {
          value: { description: 'A fixed value. Callers do not see the argument.' },
          default: { description: 'The value if a caller gives none. The argument becomes optional.' },
          description: text('The description of the argument.'),
          name: text('Another name for the argument.'),
        },
      },
    },
    timeout: duration('Time limit of a call.'),
    concurrency: { type: 'integer', minimum: 1, description: 'Concurrent calls of this tool in a process.' },
    output,
    task: { description: 'The key `task` of the tool, for the plugin `tasks`.' },
  },
} as const

const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
/** Belong to the connection, to the request itself, or to the caller's session with this host. */
const OWN_HEADERS =
  'host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|cookie|proxy-.*|mcp-.*'
const unless = (names: string) => `^(?!(?:${names})$)${HEADER_NAME.slice(1)}`

const headers = {
  type: 'object',
  propertyNames: {
    pattern: unless(OWN_HEADERS),
    patternErrorMessage: 'a header in lower case that the connection does not set',
  },
  additionalProperties: SECRET,
  description: 'Headers of each request, with their values. Names in lower case.',
} as JsonSchema & Typed<Record<string, SecretSource>>

const credentials = {
  type: 'object',
  additionalProperties: {
    anyOf: [
      SECRET,
      {
        title: 'BasicCredential',
        type: 'object',
        additionalProperties: false,
        required: ['username', 'password'],
        properties: { username: text('The user name.'), password: SECRET },
      },
      UPSTREAM_AUTH,
    ],
  },
  writeOnly: true,
  description:
    'By name of the security scheme: a secret for `apiKey` and `bearer`, user name and password for `basic`, or how to get tokens. Operations that need another scheme are left out.',
} as unknown as JsonSchema & Typed<Record<string, Credential>>

const source = {
  title: 'OpenApiSource',
  type: 'object',
  additionalProperties: false,
  required: ['document'],
  properties: {
    document: text('An OpenAPI 3.0 or 3.1 document: a JSON or YAML file, relative to the config, or an https URL.'),
    overlay: {
      anyOf: [text('A file or https URL.'), texts('Several, applied in order.')],
      description: 'OpenAPI Overlay 1.0 documents that change the document before it is used.',
    },
    baseUrl: {
      type: 'string',
      pattern: '^https?://(?!:)[^/?#@\\s{}<>*]+(/[^?#\\s{}<>]*)?$',
      description: "The URL of the API. Default: the document's first server.",
    },
    serverVariables: {
      type: 'object',
      additionalProperties: { type: 'string' },
      description: "Values for the variables of the document's server URL.",
    },
    allowHosts: texts('Hosts with private addresses or plain http that may be reached: `orders.internal:8080`.'),
    methods: {
      type: 'array',
      items: method,
      minItems: 1,
      uniqueItems: true,
      default: ['get'],
      description: 'The HTTP methods whose operations become tools.',
    },
    include: filters('Operations that become tools. Default: all.'),
    exclude: filters('Operations that do not become tools, even if `include` has them.'),
    prefix: {
      type: 'string',
      pattern: '^[A-Za-z0-9_.-]{0,64}$',
      default: '',
      description: 'Starts the name of each tool.',
    },
    overrides: {
      type: 'object',
      additionalProperties: override,
      description: 'Changes to single tools, by operationId, or by method and path: `GET /pets/{id}`.',
    },
    arguments: {
      enum: ['flat', 'grouped'],
      default: 'flat',
      description: '`grouped`: arguments are in objects `path`, `query`, `header`, `cookie` and `body`.',
    },
    output: { ...output, default: 'omit' },
    maxSchema: {
      ...size('The largest schema of a tool. Deeper parts of larger ones accept any value.'),
      default: '32kb',
    },
    access: text('The required policy, scope or role of all tools.'),
    credentials,
    auth: {
      anyOf: [UPSTREAM_AUTH],
      description: 'How to get access tokens for operations without security requirements in the document.',
    },
    headers,
    forwardHeaders: {
      type: 'array',
      items: {
        type: 'string',
        pattern: unless(`authorization|dpop|forwarded|x-forwarded-.*|${OWN_HEADERS}`),
        patternErrorMessage:
          'a header in lower case that holds no credentials of this host and is not of the connection',
      },
      uniqueItems: true,
      default: [],
      description: "Headers of the caller's request that are sent to the API.",
    },
    timeout: { ...duration('Time limit of a call, with its retries.'), default: '30s' },
    retries: {
      type: 'integer',
      minimum: 0,
      maximum: 10,
      default: 2,
      description: 'Retries of GET and HEAD after connection errors and the statuses 429, 502, 503 and 504.',
    },
    concurrency: { type: 'integer', minimum: 1, default: 64, description: 'Concurrent requests of a process.' },
    maxResponse: { ...size('The largest response.'), default: '1mb' },
    errorExcerpt: { ...size('The most that a tool returns of an error response.'), default: '2kb' },
  },
} as const

export const OPTIONS = {
  type: 'object',
  description: 'Serves the operations of OpenAPI documents as tools.',
  additionalProperties: false,
  required: ['documents'],
  properties: {
    documents: {
      type: 'object',
      minProperties: 1,
      additionalProperties: source,
      description: 'The documents by toolset name. Routes select the toolsets by these names.',
    },
    refresh: {
      anyOf: [{ const: 'off' }, duration('The time between two reads.')],
      default: 'off',
      description: 'How often documents with a URL are read again.',
    },
  },
} as const

/** The documents and how their operations become tools. */
export interface OpenApiOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledOptions extends OptionsOf<typeof OPTIONS, true> {}
export type Source = FilledOptions['documents'][string]
export type Override = NonNullable<Source['overrides']>[string]
