// The options of `plugins.openapi`.
import type { JsonSchema, Typed } from '../../core/index.ts'
import { count, flag, positiveDuration, text } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { SCHEME_AUTH, SECRET, type SecretSource, UPSTREAM_AUTH } from '../families/credentials/index.ts'
import { closed, PREFIX, record, size, texts, toolOverride } from '../families/upstream-calls/index.ts'
import type { Credential } from './credentials.ts'

export const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'] as const
const method = { enum: METHODS, description: 'The HTTP method.' } as const

const filter = {
  anyOf: [
    text('A glob for the operationId, or for the method and path: `GET /pets/*`.'),
    {
      title: 'OperationFilter',
      minProperties: 1,
      ...closed(
        {
          tag: text('A glob that one of the tags must match.'),
          path: text('A glob for the path template; `*` also matches slashes.'),
          method,
          operation: text('A glob for the operationId, or for the method and path.'),
          deprecated: flag('Whether the operation is deprecated.'),
        },
        'All given conditions must match.',
      ),
    },
  ],
} as const
const filters = (description: string) => ({ type: 'array', items: filter, description }) as const

const output = {
  enum: ['omit', 'pass', 'check'],
  description:
    'The output schema of tools. `omit`: none. `pass`: listed, not validated. `check`: listed, and a response that does not match it is an error.',
} as const

const override = {
  title: 'ToolOverride',
  ...toolOverride(output, 'argument name. With grouped arguments, names contain the group: `query.limit`'),
} as const

const HEADER_NAME = "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
/** Headers that belong to the connection, the request itself, or the caller's session with this host. */
const OWN_HEADERS =
  'host|content-.*|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|cookie|proxy-.*|mcp-.*'
const unless = (names: string) => `^(?!(?:${names})$)${HEADER_NAME.slice(1)}`

const headers = {
  type: 'object',
  propertyNames: {
    pattern: unless(OWN_HEADERS),
    patternErrorMessage: 'a lower-case header name that the host does not set itself',
  },
  additionalProperties: SECRET,
  description: 'Headers of each request. In code, a header can be a function. Names are in lower case.',
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
      SCHEME_AUTH,
    ],
  },
  writeOnly: true,
  description:
    'Credentials by security scheme: a secret for `apiKey` and `bearer`, user name and password for `basic`, or how to get tokens. Operations that require other schemes are left out.',
} as unknown as JsonSchema & Typed<Record<string, Credential>>

const source = {
  title: 'OpenApiSource',
  type: 'object',
  additionalProperties: false,
  required: ['document'],
  properties: {
    document: text('An OpenAPI 3.0 or 3.1 document: a JSON or YAML file, relative to the config, or an https URL.'),
    overlay: {
      anyOf: [text('A file or https URL.'), { ...texts('Files or https URLs, applied in order.'), minItems: 1 }],
      description: 'OpenAPI Overlay 1.0 documents, applied before the document is used.',
    },
    baseUrl: {
      type: 'string',
      pattern: '^https?://(?!:)[^/?#@\\s{}<>*]+(/[^?#\\s{}<>]*)?$',
      description: "The URL of the API. Default: the document's first server.",
    },
    serverVariables: record({ type: 'string' }, "Values of variables in the document's server URL."),
    allowHosts: {
      type: 'array',
      items: { type: 'string', pattern: '^[^/?#@]+$', patternErrorMessage: 'a host, not a URL' },
      description: 'Hosts at private addresses or with plain HTTP: `orders.internal:8080`.',
    },
    methods: {
      type: 'array',
      items: method,
      minItems: 1,
      uniqueItems: true,
      default: ['get'],
      description: 'The HTTP methods whose operations become tools.',
    },
    include: filters('Operations that become tools. Default: all.'),
    exclude: filters('Operations that do not become tools. Takes precedence over `include`.'),
    resources: {
      anyOf: [flag('Whether all are resources.'), filters('Operations that are resources.')],
      default: false,
      description:
        'GET operations that are also resources, if all required arguments are in the path: `true` for all, or filters.',
    },
    prefix: { ...PREFIX, default: '', description: 'Prefix of tool names.' },
    overrides: record(
      override,
      'Changes to individual tools, by operationId, or by method and path: `GET /pets/{id}`.',
    ),
    arguments: {
      enum: ['flat', 'grouped'],
      default: 'flat',
      description: '`grouped`: arguments are in the objects `path`, `query`, `header`, `cookie` and `body`.',
    },
    output: { ...output, default: 'omit' },
    maxSchema: {
      ...size("Maximum size of a tool's schema. Deeper parts of a larger schema accept any value."),
      default: '32kb',
    },
    access: text('The policy, scope or role that all tools require.'),
    credentials,
    auth: {
      ...UPSTREAM_AUTH,
      description: 'How the host gets access tokens for operations without security requirements.',
    } as typeof UPSTREAM_AUTH,
    headers,
    forwardHeaders: {
      type: 'array',
      items: {
        type: 'string',
        pattern: unless(`authorization|dpop|forwarded|x-forwarded-.*|${OWN_HEADERS}`),
        patternErrorMessage: 'a lower-case header name without credentials, not set by the host',
      },
      uniqueItems: true,
      default: [],
      description: 'Headers of the caller to send to the API.',
    },
    timeout: { ...positiveDuration('Time limit of a call with retries.'), default: '30s' },
    retries: {
      type: 'integer',
      minimum: 0,
      maximum: 10,
      default: 2,
      description: 'Maximum retries of GET and HEAD requests after connection errors and statuses 429, 502, 503, 504.',
    },
    concurrency: { ...count('Maximum concurrent requests per process.'), default: 64 },
    maxResponse: { ...size('Maximum size of a response.'), default: '1mb' },
    errorExcerpt: { ...size('Maximum size of the excerpt from an error response.'), default: '2kb' },
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
      description: 'Documents by toolset name. Routes select the toolsets by these names.',
    },
    refresh: {
      anyOf: [{ const: 'off' }, positiveDuration('A duration.')],
      default: 'off',
      description: 'Interval at which documents with a URL are read again.',
    },
  },
} as const

/** The documents and how their operations become tools. */
export interface OpenApiOptions extends OptionsOf<typeof OPTIONS> {}
export interface FilledOptions extends OptionsOf<typeof OPTIONS, true> {}
export type Source = FilledOptions['documents'][string]
export type Override = NonNullable<Source['overrides']>[string]
