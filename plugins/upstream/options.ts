// The options of `plugins.upstream`.
import type { JsonSchema, Typed } from '../../core/index.ts'
import { choice, count, flag, positiveDuration, text } from '../../core/internal.ts'
import type { OptionsOf } from '../../core/plugin.ts'
import { REVISIONS } from '../../core/transport.ts'
import { SECRET, UPSTREAM_AUTH, type UpstreamAuth } from '../families/credentials/index.ts'
import { closed, PREFIX, record, size, texts, toolOverride } from '../families/upstream-calls/index.ts'

/** How the host gets access tokens for the server: its own, or one for each caller. */
export type ServerAuth =
  | Omit<Extract<UpstreamAuth, { kind: 'client-credentials' }>, 'dpop'>
  | Exclude<UpstreamAuth, { kind: 'client-credentials' }>

const durationOrOff = (description: string) =>
  ({ anyOf: [positiveDuration('A duration.'), { const: 'off' }], description }) as const

const defaults = {
  connectTimeout: positiveDuration('Time limit until connected. Default `15s`; `60s` for `npx` and `uvx`.'),
  callTimeout: positiveDuration('Time limit for a call without progress. Default `60s`.'),
  maxCallTime: durationOrOff('Time limit for a call, even with progress. Default `10m`.'),
  refresh: durationOrOff('Interval at which lists are read again without a notification. Default `5m`.'),
  whenDown: choice(
    ['keep', 'hide', 'fail'],
    'Behaviour while the server is down. `keep` (default): lists stay, calls fail. `hide`: lists are empty. `fail`: startup fails, a running host is not ready.',
  ),
  newTools: choice(
    ['serve', 'withhold'],
    'Tools and prompts that the lock file does not contain. `serve` (default): served. `withhold`: left out until `mcp-host accept`.',
  ),
  changed: choice(
    ['serve', 'withhold'],
    'Tools and prompts that differ from the lock file. `withhold` (default): left out until `mcp-host accept`. `serve`: served.',
  ),
}

const output = choice(
  ['pass', 'check', 'omit'],
  'Output schemas. `pass` (default): listed, not validated. `check`: listed, and a result that does not match is an error. `omit`: not listed.',
)

const override = { title: 'UpstreamToolOverride', ...toolOverride(output, 'upstream name') } as const

const [{ properties: authProperties = {}, ...authSchema } = {}, ...perCaller] = UPSTREAM_AUTH[
  'anyOf'
] as readonly JsonSchema[]
const { dpop: _, ...authKeys } = authProperties as JsonSchema
const SERVER_AUTH = {
  ...UPSTREAM_AUTH,
  title: 'ServerAuth',
  anyOf: [{ ...authSchema, title: 'ServerClientCredentials', properties: authKeys }, ...perCaller],
} as JsonSchema & Typed<ServerAuth>

const items = (what: string) =>
  ({
    anyOf: [flag(`\`false\`: no ${what} are served.`), texts('Globs for URIs or names.')],
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
        description: 'The program of a stdio server, started without a shell. A list also contains the arguments.',
      },
      args: { type: 'array', items: { type: 'string' }, description: 'Arguments of `command`.' },
      env: record({ type: 'string', writeOnly: true }, 'Environment variables for the process.'),
      passEnv: texts(
        "Names of the host's environment variables to pass on, in addition to PATH, HOME and similar ones.",
      ),
      cwd: text('Working directory, relative to the config. Default: the folder of the config.'),
      revision: choice(['auto', ...REVISIONS], 'The protocol version. `auto` (default): detected.'),
      headers: record(SECRET, 'Headers of each request. In code, a header can be a function.'),
      forwardHeaders: texts('Headers of the caller to send with its calls.'),
      tls: closed(
        {
          ca: text('PEM file with certificate authorities.'),
          cert: text('PEM file with the client certificate.'),
          key: { ...text('PEM file with the key of `cert`.'), writeOnly: true },
        },
        'Paths of PEM files, relative to the config: ca, cert, key.',
      ),
      auth: SERVER_AUTH,
      sessions: choice(
        ['auto', 'shared', 'per-session', 'per-user', 'per-call'],
        'Scope of a session. `per-session`: one client session; without one, as `per-user`. `per-user`: one user. `per-call`: one call. `shared`: all callers. `auto` (default): `shared` if the server has no sessions, otherwise `per-session`.',
      ),
      maxSessions: count('Maximum upstream sessions. Default 1000.'),
      concurrency: count(
        'Maximum concurrent calls per worker, without held calls. Default 64 with `url`, 16 with `command`.',
      ),
      prefix: {
        ...PREFIX,
        description: "Prefix of tool and prompt names; `''` for none. Default: the toolset name and `_`.",
      },
      include: texts('Globs for upstream tool names. Default: all tools.'),
      exclude: texts('Globs for upstream tool names. Takes precedence over `include`.'),
      resources: items('resources'),
      prompts: items('prompts'),
      overrides: record(override, 'Changes to tools, by upstream name.'),
      instructions: choice(
        ['ignore', 'append'],
        'Instructions of the server for models. `ignore` (default): not forwarded. `append`: added to those of the host.',
      ),
      access: text('The policy, scope or role that all items require.'),
      asks: closed(
        {
          elicit: flag('Elicitation.'),
          sample: flag('Sampling.'),
          roots: flag('Roots. Callers then choose paths on the machine of the server.'),
        },
        'Server requests that are forwarded to the client: elicit, sample, roots. Default: elicit and sample.',
      ),
      input: choice(
        ['pass', 'check'],
        'Validation of arguments. `pass` (default): by the server. `check`: also by the host.',
      ),
      output,
      meta: choice(
        ['pass', 'drop'],
        '`_meta` of calls and results. `pass` (default): forwarded without protocol fields. `drop`: removed.',
      ),
      uris: choice(
        ['keep', 'wrap'],
        'Resource URIs. `keep` (default): unchanged. `wrap`: with the toolset name, such as `files+file:///a.txt`.',
      ),
      maxResult: size('Maximum size of a result. Default `1mb`.'),
      maxSchema: size(
        'Maximum size of a tool, resource or prompt, without its icons. Larger ones are left out. Default `64kb`.',
      ),
      maxTools: count('Maximum number of tools. A longer list is refused. Default 1000.'),
      ...defaults,
    },
    'An MCP server: `url` or `command`.',
  ),
}

export const OPTIONS = {
  title: 'UpstreamOptions',
  type: 'object',
  description: 'Serves existing MCP servers as toolsets.',
  additionalProperties: false,
  required: ['servers'],
  properties: {
    servers: {
      ...record(server, 'Servers by toolset name.'),
      propertyNames: { pattern: '^[^:/][^/]*$' },
    },
    ...defaults,
    processes: closed(
      {
        max: count('Maximum processes for sessions, for all servers together. Default 200.'),
        stopGrace: positiveDuration('Time between closing stdin and SIGTERM. Default `2s`.'),
        idle: durationOrOff('Idle sessions (also with `url`) end after this time. Default `5m`.'),
      },
      'Limits for processes and sessions.',
    ),
    held: closed(
      {
        max: count(
          "Maximum held calls per server, in one worker. Held: a call that waits for the client's response. Default 100.",
        ),
        maxPerUser: count('The same limit per user and server. Default 5.'),
        for: positiveDuration('Maximum waiting time of a held call. Default `5m`.'),
      },
      'Limits for held calls.',
    ),
  },
} as const

/** Upstream MCP servers by toolset name. */
export interface UpstreamOptions extends OptionsOf<typeof OPTIONS> {}
export type UpstreamDefaults = Pick<UpstreamOptions, keyof typeof defaults>
/** An upstream MCP server: with `url` or `command`. */
export type UpstreamServer = UpstreamOptions['servers'][string]
/** Changes to one tool. */
export type UpstreamToolOverride = NonNullable<UpstreamServer['overrides']>[string]
/** Changes to one argument of a tool. */
export type ArgumentOverride = NonNullable<UpstreamToolOverride['arguments']>[string]
