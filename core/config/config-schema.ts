// The JSON Schema (draft 2020-12) of a config, with its defaults. define-config.ts infers the types from it.

import type { JsonSchema } from '../mcp/protocol.ts'
import { MODERN_REVISION } from '../mcp/revisions.ts'
import { TOOLSET_NAME_PATTERN } from '../mcp/routes.ts'
import { SIZE_PATTERN } from '../mcp/units.ts'
import { collectKeys, type DeclaredKeys, type Declaring } from './declared-keys.ts'
import {
  closed,
  count,
  duration,
  flag,
  HTTP_URL_PATTERN,
  icon,
  isolate,
  LISTEN_ADDRESS,
  list,
  oneOrMore,
  positiveDuration,
  SCOPE,
  text,
} from './schema-parts.ts'

export const ROUTE_PATH_PATTERN = '^/'

const toDef = (name: string): string => `#/$defs/${name}`

function moveRefs(schema: unknown, plugin: string): unknown {
  if (Array.isArray(schema)) return schema.map(item => moveRefs(item, plugin))
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([key, value]) => {
    const isRef = key === '$ref' && typeof value === 'string'
    return [key, isRef ? value.replace(/^#\/\$defs\//, toDef(`${plugin}.`)) : moveRefs(value, plugin)]
  })
  return Object.fromEntries(entries)
}

function hoist(
  name: string,
  { $defs = {}, ...schema }: JsonSchema,
): { schema: JsonSchema; defs: [string, JsonSchema][] } {
  const own = Object.entries($defs as Record<string, JsonSchema>)
  return {
    schema: moveRefs(schema, name) as JsonSchema,
    defs: own.map(([key, definition]) => [`${name}.${key}`, moveRefs(definition, name) as JsonSchema]),
  }
}

const server = closed(
  {
    name: text('Name that clients see.', { examples: ['acme-tools'] }),
    version: text('Version that clients see.', { examples: ['1.0.0'] }),
    title: text('Name for people.'),
    description: text('What this server is for.'),
    websiteUrl: text('A page about this server.', { format: 'uri', pattern: '^https?://' }),
    icons: list(icon, 'Icons that clients may show.'),
    instructions: text('For the model: how to use this server.'),
  },
  {
    required: ['name', 'version'],
    description: 'Who this server says it is.',
    examples: [{ name: 'acme-tools', version: '1.0.0' }],
  },
)

const secretPem = <const D extends string>(description: D) => text(description, { writeOnly: true })

const httpTls = closed(
  {
    cert: text('The certificate, then its intermediates: PEM, or the path of a PEM file.', {
      examples: ['./tls/fullchain.pem'],
    }),
    key: secretPem('Its key: PEM, or the path of a PEM file.'),
    passphrase: secretPem('Of a key that is encrypted.'),
    minVersion: { enum: ['TLSv1.2', 'TLSv1.3'], default: 'TLSv1.2', description: 'The oldest version that is spoken.' },
    handshakeTimeout: duration('How long a handshake may take.', { default: '10s' }),
  },
  {
    title: 'HttpTls',
    required: ['cert', 'key'],
    description: 'Serves HTTPS. Files are relative to the config, and read again on reload (SIGHUP).',
  },
)

export const http = closed(
  {
    host: text('Address to listen on.', {
      default: '127.0.0.1',
      ...LISTEN_ADDRESS,
    }),
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65_535,
      default: 3000,
      description: 'Port to listen on; 0 selects a free port.',
    },
    backlog: {
      type: 'integer',
      minimum: 1,
      maximum: 65_535,
      // The default system limit of Linux since 5.4.
      default: 4096,
      description: 'Connections that can wait to be accepted. The system limit (net.core.somaxconn) also applies.',
    },
    tls: httpTls,
    publicUrl: text('How clients reach this host; metadata, challenges and the guard use it.', {
      format: 'uri',
      pattern: `^(?!https?://(0\\.0\\.0\\.0|\\[::\\])(:|/|$))${HTTP_URL_PATTERN.slice(1)}`,
      patternErrorMessage:
        "an absolute http(s) URL for clients, not 0.0.0.0 or [::], such as 'https://mcp.acme.example'",
      examples: ['https://mcp.acme.example'],
    }),
    maxBodySize: {
      type: ['string', 'number'],
      pattern: SIZE_PATTERN,
      // Every MCP request is larger.
      minimum: 100,
      default: '4mb',
      description: 'Maximum request body: bytes, or a number with b, kb, mb or gb. A larger body gets 413.',
    },
    keepAliveTimeout: duration('How long an idle connection is kept.', { default: '5s' }),
    requestTimeout: duration('How long receiving one request can take. It does not limit calls and streams.', {
      default: '60s',
    }),
    writeTimeout: duration('How long a client can take to read a response, or the events that are queued for it.', {
      default: '30s',
    }),
    allowedHosts: list(
      text('A host name, with or without port.', {
        pattern: '^([^\\s/?#@:*\\[\\]]+|\\[[0-9A-Fa-f:.]+\\])(:([1-5]?\\d{1,4}|6[0-5]\\d{3}))?$',
        patternErrorMessage: "a host name such as 'mcp.acme.example', without scheme, path and wildcard",
      }),
      "Accepted host names, in addition to publicUrl's and, on a loopback bind, loopback names.",
      { default: [] },
    ),
    allowedOrigins: list(
      text('An origin.', {
        pattern: '^(null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\\s]+(/[^?#\\s]*)?)$',
        patternErrorMessage: "an origin such as 'https://app.acme.example', without wildcard",
        examples: ['https://app.acme.example'],
      }),
      "Accepted origins of web pages, in addition to publicUrl's and, on a loopback bind, loopback origins.",
      { default: [] },
    ),
    trustProxy: {
      anyOf: [
        flag('True: one proxy.'),
        { type: 'integer', minimum: 1, maximum: 32, description: 'Number of proxies in front of the host.' },
        list(text('An address, a range such as 10.0.0.0/8, or loopback, linklocal, uniquelocal.'), 'Their addresses.', {
          minItems: 1,
        }),
      ],
      default: false,
      description: 'Trusted proxies in front of the host, whose X-Forwarded-For and X-Forwarded-Host are used.',
      examples: [1, ['10.0.0.0/8']],
    },
  },
  { title: 'HttpSettings', default: {}, description: 'Where and how this host listens.' },
)

export const tools = closed(
  {
    fetchTimeout: positiveDuration('For ctx.fetch.', { default: '30s' }),
    callTimeout: {
      anyOf: [{ const: 'off' }, positiveDuration('How long one call may take.')],
      default: 'off',
      description:
        "Limit for a whole call, except while it waits for its client. A tool's own timeout takes precedence.",
    },
    limits: {
      type: 'object',
      description:
        "Globs over names of tools ('heavy_*'), and limits of each tool that fits. The narrower of all holds.",
      additionalProperties: closed(
        {
          timeout: positiveDuration('How long one call can take, including its time in the queue.'),
          concurrency: count('How many calls run at a time in one process; more wait.'),
          isolate,
        },
        { title: 'LimitsOfTools', minProperties: 1, description: 'Limits of each of these tools.' },
      ),
      examples: [{ 'heavy_*': { timeout: '10s', concurrency: 2 } }],
    },
  },
  { title: 'ToolLimits', default: {}, description: 'Limits for every tool.' },
)

const modulePath = text('A module path or glob, relative to the config.', { examples: ['./tools/*.ts'] })
const definition = { type: 'object', description: 'What defineTool, defineResource or definePrompt made.' } as const

const toolsetSources = [modulePath, definition, list({ anyOf: [modulePath, definition] }, 'Several of these.')] as const

const toolsets: JsonSchema = {
  type: 'object',
  description: 'Named groups of tools, resources and prompts; routes say which they serve.',
  propertyNames: { pattern: TOOLSET_NAME_PATTERN },
  additionalProperties: {
    anyOf: [
      ...toolsetSources,
      closed(
        {
          from: { anyOf: toolsetSources, description: 'What the toolset is made of.' },
          internal: flag("Routes with toolsets: ':name' do not reach it.", { default: false }),
        },
        { required: ['from'], description: 'A toolset with settings.' },
      ),
    ],
  },
  default: {},
  examples: [{ clock: './tools/clock.ts' }],
}

const routeToolsets = {
  anyOf: [
    text('The name of a toolset.'),
    list(text('The name of a toolset.'), 'The name of a toolset; each of them', { minItems: 1 }),
    closed(
      {
        param: text('A parameter of the path.', { pattern: '^[A-Za-z_]\\w*$' }),
        of: list(text('The name of a toolset.'), 'Toolsets that the parameter can name.', { minItems: 1 }),
      },
      { required: ['param', 'of'], description: 'The toolset that a parameter of the path names.' },
    ),
  ],
  description:
    "Toolsets served here. { param, of } takes the toolset that the path's parameter names; ':name' takes any but internal ones.",
  examples: [['clock']],
} as const

export const sessions = closed(
  {
    idleTimeout: positiveDuration('An unused session ends after this time. An open GET counts as use.', {
      default: '2h',
    }),
    maxIdle: {
      type: 'integer',
      minimum: 0,
      default: 10_000,
      description: 'Idle sessions kept, of all owners together; past it the owner of most loses its oldest.',
    },
    maxPerOwner: {
      type: 'integer',
      minimum: 1,
      // Half of `maxIdle`, so that one owner cannot use all of it. A lower limit would refuse offices behind one address.
      default: 5_000,
      description:
        'Maximum sessions of one user, or of one address for anonymous callers. Beyond it, initialize gets 429.',
    },
    maxCallsPerSession: {
      type: 'integer',
      minimum: 1,
      default: 32,
      description: 'Requests of one session that run at once, also those whose client has gone; more are answered 429.',
    },
    maxCallsPerOwner: {
      type: 'integer',
      minimum: 1,
      default: 256,
      description: 'The same of all sessions of one user, or of one address for anonymous callers.',
    },
  },
  {
    title: 'SessionLimits',
    default: {},
    description: `Sessions of clients that open them: revisions before ${MODERN_REVISION}.`,
  },
)

const authorize = {
  description: 'Who may use the route: true for any user, the name of a policy, or an object of scopes and roles.',
  anyOf: [
    { const: true },
    text('The name of a policy.'),
    closed({ scope: oneOrMore('A scope.', SCOPE), role: oneOrMore('A role.') }, { minProperties: 1 }),
  ],
} as const

const scope = text('A scope.', SCOPE)
const challengeScope = {
  description: 'Scopes in the challenge to a client without a token, if `authorize` names none. Not enforced.',
  anyOf: [scope, list(scope, 'Scopes.', { minItems: 1, uniqueItems: true })],
  examples: ['mcp.tools'],
} as const

export const route = closed(
  {
    toolsets: routeToolsets,
    default: list(text('The name of a toolset.'), "Toolsets served when the path's optional parameter is absent."),
    stateless: flag("POST only, every request on its own. Default: the config's stateless."),
    listen: flag('Serves subscriptions/listen on a stateless route too. Default: on routes that keep sessions.'),
    authorize,
    challengeScope,
    cors: text('The name of a CORS policy.'),
  },
  { title: 'RouteSettings', required: ['toolsets'], description: 'What is served at this path.' },
)

const secrets: JsonSchema = {
  anyOf: [
    list(
      { type: ['string', 'null'], minLength: 1, writeOnly: true, description: 'A long random string.' },
      'Null entries are skipped.',
    ),
    closed(
      { file: text('One secret a line; a start makes it where it is missing. MCP_HOST_SECRETS comes before it.') },
      { required: ['file'] },
    ),
  ],
  description: 'The first signs, all verify. Default: one made at start, for this process.',
  writeOnly: true,
}

const callable = (description: string): JsonSchema => ({ callable: true, description })

const off: JsonSchema = { const: false, description: 'Switches the plugin off.' }

/** `memory`, or an object with the options of one plugin. */
const storeSchema = (properties: Record<string, JsonSchema>): JsonSchema => ({
  description: 'The store of sessions, streams, tasks and logins. Default: memory.',
  anyOf: [
    { const: 'memory', description: 'This process. The contents end with it.' },
    { ...closed(properties, { minProperties: 1, maxProperties: 1 }), description: 'A database, with its options.' },
  ],
  examples: ['memory'],
})

const pluginMap = (options: Record<string, JsonSchema>, description: string): JsonSchema => ({
  type: 'object',
  description,
  properties: Object.fromEntries(Object.entries(options).map(([name, schema]) => [name, { anyOf: [off, schema] }])),
  additionalProperties: { anyOf: [off, { type: 'object', description: "The plugin's options." }] },
})

const withoutRequiredOf = new WeakMap<object, JsonSchema>()

/** The schema without `required`, because a route overrides single options. Cached per schema. */
export function withoutRequired(schema: object): JsonSchema {
  const { required: _, ...rest } = schema as JsonSchema
  const known = withoutRequiredOf.get(schema) ?? rest
  withoutRequiredOf.set(schema, known)
  return known
}

/**
 * The schema of a complete config. `plugins`: built-in plugins by name, whose options become `$defs`. Without them, each plugin's
 * own schema checks its options. `keys`: what plugins add.
 */
export function buildConfigSchema(
  plugins: Readonly<Record<string, Declaring>>,
  keys: DeclaredKeys = collectKeys(Object.entries(plugins)),
): JsonSchema {
  const options = Object.entries(plugins).map(([name, plugin]) => [name, plugin.options as JsonSchema] as const)
  const overrides = options.map(([name]) => [name, { $ref: toDef(name) }] as const)
  const general = options.map(([name, { required }]) => {
    return [name, { $ref: toDef(name), ...(required !== undefined && { required }) }] as const
  })
  const hoisted = options.map(([name, schema]) => [name, hoist(name, withoutRequired(schema))] as const)
  const shared = [...keys.sections].map(([name, { value }]) => [name, hoist(name, value as JsonSchema)] as const)
  const optionsAt = (plugin: string, value: object) =>
    Object.hasOwn(plugins, plugin)
      ? { schema: { $ref: toDef(plugin) }, defs: [] }
      : hoist(plugin, withoutRequired(value))
  const storeKeys = [...keys.storeKeys].map(([key, { value, plugin }]) => [key, optionsAt(plugin, value)] as const)
  const store = storeSchema(Object.fromEntries(storeKeys.map(([key, { schema }]) => [key, schema])))
  const routeKeys = [...keys.routeKeys].map(([key, { value, plugin }]) => {
    return [key, optionsAt(plugin, value)] as const
  })
  const $defs = Object.fromEntries([
    ...hoisted.map(([name, { schema }]) => [name, schema] as const),
    ...[...hoisted, ...shared, ...routeKeys, ...storeKeys].flatMap(([, { defs }]) => defs),
  ])
  return closed(
    {
      server,
      http,
      stateless: flag('Every route serves request by request, without sessions.', { default: false }),
      secrets,
      tools,
      sessions,
      store,
      ...Object.fromEntries(shared.map(([name, { schema }]) => [name, schema])),
      toolsets,
      routes: {
        type: 'object',
        minProperties: 1,
        description: "Paths, and what is served there. ':name?' is an optional parameter.",
        propertyNames: { pattern: ROUTE_PATH_PATTERN },
        additionalProperties: {
          ...route,
          properties: {
            ...route.properties,
            ...Object.fromEntries(routeKeys.map(([key, { schema }]) => [key, schema])),
            store,
            plugins: pluginMap(
              Object.fromEntries(overrides),
              'Plugins switched off, or options changed, for this route alone.',
            ),
          },
        },
        examples: [{ '/': { toolsets: ['clock'] } }],
      },
      plugins: pluginMap(Object.fromEntries(general), 'Plugins by name, each with its options; false: off.'),
      configureSession: callable('Changes what one caller sees.'),
      runSession: callable('Acts before and after a session.'),
    },
    {
      title: 'Config',
      required: ['server', 'routes'],
      ...(Object.keys($defs).length > 0 && { $defs }),
    },
  )
}
