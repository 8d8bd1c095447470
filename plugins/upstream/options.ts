// The options of `plugins.upstream`.
import type { JsonSchema, ToolDefinition } from '../../core/index.ts'
import { DURATION_PATTERN, type Duration, type Revision, SIZE_PATTERN, type Size } from '../../core/plugin.ts'
import { REVISIONS } from '../../core/transport.ts'
import { SECRET, type SecretSource, UPSTREAM_AUTH, type UpstreamAuth } from '../families/credentials/index.ts'

/** An access token of this host, from the authorization server of the upstream server. */
export type HostAuth = Omit<Extract<UpstreamAuth, { kind: 'client-credentials' }>, 'dpop'>

/** A change of one argument of a tool. */
export interface ArgumentOverride {
  /** A fixed value. The argument is not listed. */
  value?: unknown
  default?: unknown
  description?: string
  /** The name that callers use. */
  name?: string
}

/** Changes of one tool. */
export interface UpstreamToolOverride {
  /** The whole name, without prefix. */
  name?: string
  title?: string
  description?: string
  annotations?: ToolDefinition['annotations']
  access?: string
  /** By the upstream server's argument names. */
  arguments?: Record<string, ArgumentOverride>
  timeout?: Duration
  concurrency?: number
  output?: 'pass' | 'omit'
}

/** Settings that apply to all servers, or to one. */
export interface UpstreamDefaults {
  connectTimeout?: Duration
  callTimeout?: Duration
  maxCallTime?: Duration | 'off'
  refresh?: Duration | 'off'
  whenDown?: 'keep' | 'hide' | 'fail'
}

/** An upstream MCP server: with `url` or `command`. */
export interface UpstreamServer extends UpstreamDefaults {
  url?: string
  command?: string | string[]
  args?: string[]
  env?: Record<string, string>
  passEnv?: string[]
  cwd?: string
  revision?: Revision | 'auto'
  headers?: Record<string, SecretSource>
  forwardHeaders?: string[]
  tls?: { ca?: string; cert?: string; key?: string }
  auth?: HostAuth
  sessions?: 'auto' | 'shared' | 'per-session' | 'per-user' | 'per-call'
  maxSessions?: number
  prefix?: string
  include?: string[]
  exclude?: string[]
  resources?: boolean | string[]
  prompts?: boolean | string[]
  overrides?: Record<string, UpstreamToolOverride>
  access?: string
  asks?: { elicit?: boolean; sample?: boolean; roots?: boolean }
  input?: 'pass' | 'check'
  output?: 'pass' | 'omit'
  meta?: 'pass' | 'drop'
  maxResult?: Size
  maxSchema?: Size
  maxTools?: number
}

/** Upstream MCP servers by toolset name. */
export interface UpstreamOptions extends UpstreamDefaults {
  servers: Record<string, UpstreamServer>
  processes?: { max?: number; stopGrace?: Duration; idle?: Duration | 'off' }
  held?: { max?: number; maxPerUser?: number; for?: Duration }
}

const POSITIVE = `^(?=.*[1-9])${DURATION_PATTERN.slice(1)}`

const text = (description: string) => ({ type: 'string', minLength: 1, description }) as const
const texts = (description: string) =>
  ({ type: 'array', items: { type: 'string', minLength: 1 }, description }) as const
const flag = (description: string) => ({ type: 'boolean', description }) as const
const count = (description: string) => ({ type: 'integer', minimum: 1, description }) as const
const duration = (description: string) =>
  ({ type: ['string', 'number'], pattern: POSITIVE, exclusiveMinimum: 0, description }) as const
const durationOrOff = (description: string) =>
  ({ anyOf: [duration('A duration.'), { const: 'off' }], description }) as const
const size = (description: string) =>
  ({ type: ['string', 'number'], pattern: SIZE_PATTERN, exclusiveMinimum: 0, description }) as const
const choice = <const Value extends string>(values: readonly Value[], description: string) =>
  ({ type: 'string', enum: values, description }) as const
const closed = (properties: object, description: string) =>
  ({ type: 'object', additionalProperties: false, properties, description }) as const
const record = (value: object, description: string) =>
  ({ type: 'object', additionalProperties: value, description }) as const

const defaults = {
  connectTimeout: duration('Limit for connecting, handshake included. Default `15s`.'),
  callTimeout: duration('Limit for a call since its start or last progress. Default `60s`.'),
  maxCallTime: durationOrOff('Limit for a call regardless of progress. Default `10m`.'),
  refresh: durationOrOff('How often lists are read again without a notification. Default `5m`.'),
  whenDown: choice(
    ['keep', 'hide', 'fail'],
    'While the server is down. `keep` (default): lists stay, and calls fail. `hide`: lists are empty. `fail`: startup fails, and the host is not ready.',
  ),
}

const output = choice(['pass', 'omit'], 'Output schemas. `pass` (default): listed, not checked. `omit`: not listed.')

const override = {
  title: 'UpstreamToolOverride',
  ...closed(
    {
      name: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,128}$', description: 'The whole name of the tool.' },
      title: text('The title of the tool.'),
      description: text('The description of the tool.'),
      annotations: closed(
        {
          title: text('The title of the tool.'),
          readOnlyHint: flag('The tool changes nothing.'),
          destructiveHint: flag('The tool can delete or overwrite.'),
          idempotentHint: flag('A repetition has no further effect.'),
          openWorldHint: flag('The tool reaches external systems.'),
        },
        'Hints about the tool, in addition to those of the server.',
      ),
      access: text('The policy, scope or role that the tool requires.'),
      arguments: record(
        closed(
          {
            value: { description: 'A fixed value. The argument is then not listed.' },
            default: { description: 'Listed as default, and sent if the argument is missing.' },
            description: text('The description of the argument.'),
            name: text('The name that callers use.'),
          },
          'Changes of an argument.',
        ),
        'Changes of arguments, by their names at the server.',
      ),
      timeout: duration('Limit for a call.'),
      concurrency: count('Concurrent calls per process.'),
      output,
    },
    'Changes of a tool.',
  ),
}

const [{ properties: authProperties = {}, ...authSchema } = {}] = UPSTREAM_AUTH['anyOf'] as readonly JsonSchema[]
const { dpop: _, ...authKeys } = authProperties as JsonSchema
const HOST_AUTH = {
  ...authSchema,
  title: 'HostAuth',
  properties: authKeys,
  description: 'An access token of this host. The token of the caller is never forwarded.',
}

const items = (what: string) =>
  ({
    anyOf: [flag(`Whether ${what} are served.`), texts('Globs.')],
    description: `Which ${what} are served. Default: all.`,
  }) as const

const server = {
  title: 'UpstreamServer',
  ...closed(
    {
      url: {
        type: 'string',
        pattern: '^https?://[^\\s#]+$',
        writeOnly: true,
        description: 'URL of a Streamable HTTP or HTTP+SSE server.',
      },
      command: {
        anyOf: [text('A program.'), { ...texts('A program and its arguments.'), minItems: 1 }],
        description: 'A stdio server, started without a shell.',
      },
      args: { type: 'array', items: { type: 'string' }, description: 'Arguments of `command`.' },
      env: record({ type: 'string', writeOnly: true }, 'Environment variables of the process.'),
      passEnv: texts('Variables of the host that the process gets, in addition to PATH, HOME and similar ones.'),
      cwd: text('Working directory, relative to the config. Default: the folder of the config.'),
      revision: choice(['auto', ...REVISIONS], 'The protocol version. Default `auto`: detected.'),
      headers: record(SECRET, 'Headers of each request.'),
      forwardHeaders: texts('Headers of the caller that are sent with its calls.'),
      tls: closed(
        {
          ca: text('PEM file with certificate authorities.'),
          cert: text('PEM file with the client certificate.'),
          key: { ...text('PEM file with the key of `cert`.'), writeOnly: true },
        },
        'TLS files, relative to the config.',
      ),
      auth: HOST_AUTH,
      sessions: choice(
        ['auto', 'shared', 'per-session', 'per-user', 'per-call'],
        'Who shares a session of the server. Default `auto`: one for each client session or user, unless the server has no sessions.',
      ),
      maxSessions: count('Sessions at the server. Default 1000.'),
      prefix: {
        type: 'string',
        pattern: '^[A-Za-z0-9_.-]{0,64}$',
        description: 'Of tool and prompt names. Default: the toolset name and `_`.',
      },
      include: texts('Globs for the names of tools at the server.'),
      exclude: texts('Globs for the names of tools at the server. Wins over `include`.'),
      resources: items('resources'),
      prompts: items('prompts'),
      overrides: record(override, 'Changes of tools, by their names at the server.'),
      access: text('The policy, scope or role that all items require.'),
      asks: closed(
        {
          elicit: flag('Elicitation.'),
          sample: flag('Sampling.'),
          roots: flag('Roots.'),
        },
        'Requests of the server that reach the client. Default: all.',
      ),
      input: choice(['pass', 'check'], 'Arguments. `pass` (default): the server checks them. `check`: this host, too.'),
      output,
      meta: choice(['pass', 'drop'], '`_meta` of calls and results. Default `pass`: without protocol fields.'),
      maxResult: size('Maximum size of a result. Default `1mb`.'),
      maxSchema: size('Maximum size of the schemas of a tool. Default `64kb`.'),
      maxTools: count('Maximum number of tools. Default 1000.'),
      ...defaults,
    },
    'An MCP server: `url` or `command`.',
  ),
}

export const OPTIONS = {
  title: 'UpstreamOptions',
  type: 'object' as const,
  description: 'Serves existing MCP servers as toolsets.',
  additionalProperties: false as const,
  required: ['servers'] as const,
  properties: {
    servers: {
      ...record(server, 'Servers by toolset name.'),
      propertyNames: { pattern: '^[^:/][^/]*$' },
    } as JsonSchema,
    ...defaults,
    maxCallTime: defaults.maxCallTime as JsonSchema,
    refresh: defaults.refresh as JsonSchema,
    processes: closed(
      {
        max: count('Processes of all servers. Default 200.'),
        stopGrace: duration('Time between the end of stdin and SIGTERM. Default `2s`.'),
        idle: durationOrOff('A session without calls ends after this time. Default `5m`.'),
      },
      'Processes and sessions.',
    ) as JsonSchema,
    held: closed(
      {
        max: count('Calls of this process that wait for a response of their client. Default 100.'),
        maxPerUser: count('The same for one user. Default 5.'),
        for: duration('How long a call waits. Default `5m`.'),
      },
      'Calls that wait for a response of their client.',
    ) as JsonSchema,
  },
}
