// The JSON Schema (draft 2020-12) of a config, with its defaults. define-config.ts infers the types from it.

import { getOrCreate } from '../http/get-or-create.ts'
import { TOOLSET_NAME_PATTERN } from '../mcp/routes/routes.ts'
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
  mapOf,
  oneOrMore,
  positiveDuration,
  SCOPE,
  text,
} from '../mcp/schema/schema-parts.ts'
import { SIZE_PATTERN } from '../mcp/units.ts'
import type { JsonSchema } from '../mcp/wire/protocol.ts'
import { MODERN_REVISION } from '../mcp/wire/revisions.ts'
import { collectKeys, type DeclaredKeys, type Declaring } from './declared-keys.ts'

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
    description: text('Purpose of this server.'),
    websiteUrl: text('A page about this server.', { format: 'uri', pattern: '^https?://' }),
    icons: list(icon, 'Icons for clients: { src, mimeType, sizes, theme }.'),
    instructions: text('Instructions for the model on how to use this server.'),
  },
  {
    required: ['name', 'version'],
    description: 'Name, version and description of this server.',
    examples: [{ name: 'acme-tools', version: '1.0.0' }],
  },
)

const secretPem = <const D extends string>(description: D) => text(description, { writeOnly: true })

const httpTls = closed(
  {
    cert: text('The certificate with its chain (fullchain.pem): PEM, or the path of a PEM file.', {
      examples: ['./tls/fullchain.pem'],
    }),
    key: secretPem('The private key: PEM, or the path of a PEM file.'),
    passphrase: secretPem('Passphrase of an encrypted key.'),
    minVersion: { enum: ['TLSv1.2', 'TLSv1.3'], default: 'TLSv1.2', description: 'The minimum TLS version.' },
    handshakeTimeout: duration('Time limit of a handshake. A change requires a restart.', { default: '10s' }),
  },
  {
    title: 'HttpTls',
    required: ['cert', 'key'],
    description: 'Serves HTTPS. Files are relative to the config, and read again on reload (SIGHUP).',
  },
)

export const http = closed(
  {
    host: text('Address to listen on. 0.0.0.0 for every interface, localhost for both loopback addresses.', {
      default: '127.0.0.1',
      ...LISTEN_ADDRESS,
    }),
    port: count('Port to listen on; 0 selects a free port.', { minimum: 0, maximum: 65_535, default: 3000 }),
    // The default is the system limit of Linux since 5.4.
    backlog: count('Connections that can wait to be accepted. The system limit (net.core.somaxconn) also applies.', {
      maximum: 65_535,
      default: 4096,
    }),
    tls: httpTls,
    publicUrl: text('URL of this host for clients: https://mcp.acme.example. Can have a path, which a proxy strips.', {
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
      description: 'Maximum request body. A larger body gets 413.',
    },
    keepAliveTimeout: duration('Time for which an idle connection stays open.', { default: '5s' }),
    requestTimeout: duration('Time limit for receiving a request. Calls and streams are not limited.', {
      default: '60s',
    }),
    writeTimeout: duration('Time limit for a client to read a response or queued events.', {
      default: '30s',
    }),
    allowedHosts: list(
      text('A host name, with or without port.', {
        pattern: '^([^\\s/?#@:*\\[\\]]+|\\[[0-9A-Fa-f:.]+\\])(:([1-5]?\\d{1,4}|6[0-5]\\d{3}))?$',
        patternErrorMessage: "a host name such as 'mcp.acme.example', without scheme, path and wildcard",
      }),
      'Accepted host names, with or without port, in addition to that of publicUrl. On a loopback address also loopback names.',
      { default: [] },
    ),
    allowedOrigins: list(
      text('An origin.', {
        pattern: '^(null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#@*\\s]+(/[^?#\\s]*)?)$',
        patternErrorMessage: "an origin such as 'https://app.acme.example', without wildcard",
        examples: ['https://app.acme.example'],
      }),
      'Accepted origins of web pages, in addition to that of publicUrl. On a loopback address also loopback origins.',
      { default: [] },
    ),
    trustProxy: {
      anyOf: [
        flag('True: one proxy.'),
        count('Number of proxies in front of the host.', { maximum: 32 }),
        list(
          text('An address, a range such as 10.0.0.0/8, or loopback, linklocal, uniquelocal.'),
          'Addresses of the proxies.',
          {
            minItems: 1,
          },
        ),
      ],
      default: false,
      description:
        'Proxies to trust for X-Forwarded-For and X-Forwarded-Host: the number of proxies (`true` means 1), or a list of addresses and ranges.',
      examples: [1, ['10.0.0.0/8']],
    },
  },
  { title: 'HttpSettings', default: {}, description: 'Address, port and limits of the HTTP server.' },
)

export const tools = closed(
  {
    fetchTimeout: positiveDuration('Time limit of ctx.fetch.', { default: '30s' }),
    callTimeout: {
      anyOf: [{ const: 'off' }, positiveDuration('Time limit of a call.')],
      default: 'off',
      description: "Time limit of a call, except while it waits for its client. A tool's `timeout` replaces it.",
    },
    limits: mapOf(
      closed(
        {
          timeout: positiveDuration('Time limit of a call, including its time in the queue.'),
          concurrency: count('Maximum concurrent calls in one process. Further calls are queued.'),
          isolate,
        },
        { title: 'LimitsOfTools', minProperties: 1, description: 'Limits of each of these tools.' },
      ),
      'Glob for tool names -> timeout, concurrency, isolate. The lowest value applies.',
      { examples: [{ 'heavy_*': { timeout: '10s', concurrency: 2 } }] },
    ),
  },
  { title: 'ToolLimits', default: {}, description: 'Limits for every tool.' },
)

const modulePath = text('A module path or glob, relative to the config.', { examples: ['./tools/*.ts'] })
const definition = { type: 'object', description: 'The result of defineTool, defineResource or definePrompt.' } as const

const toolsetSources = [modulePath, definition, list({ anyOf: [modulePath, definition] }, 'Several of these.')] as const

const toolsets: JsonSchema = mapOf(
  {
    anyOf: [
      ...toolsetSources,
      closed(
        {
          from: { anyOf: toolsetSources, description: 'Sources of the toolset.' },
          internal: flag("Hides the toolset from routes with toolsets: ':name'.", { default: false }),
        },
        { required: ['from'], description: 'A toolset with settings.' },
      ),
    ],
  },
  'Named groups of tools, resources and prompts. Routes select them by name.',
  { propertyNames: { pattern: TOOLSET_NAME_PATTERN }, default: {}, examples: [{ clock: './tools/clock.ts' }] },
)

const routeToolsets = {
  anyOf: [
    text('The name of a toolset.'),
    list(text('The name of a toolset.'), 'The name of a toolset; each of them', { minItems: 1 }),
    closed(
      {
        param: text('A parameter of the path.', { pattern: '^[A-Za-z_]\\w*$' }),
        of: list(text('The name of a toolset.'), 'Toolsets that the parameter can name.', { minItems: 1 }),
      },
      { required: ['param', 'of'], description: 'The toolset that a path parameter names.' },
    ),
  ],
  description:
    "Toolsets of the route. `{ param, of }`: the toolset that the path parameter names; only names in `of` are allowed. `':name'`: the same, for every toolset that is not internal.",
  examples: [['clock']],
} as const

export const sessions = closed(
  {
    idleTimeout: positiveDuration('Time limit of unused sessions. Running calls and open streams count as use.', {
      default: '2h',
    }),
    maxIdle: count('Maximum idle sessions. Above it, the owner with the most loses the oldest.', {
      minimum: 0,
      default: 10_000,
    }),
    maxPerOwner: count(
      'Maximum sessions of one user, or of one IP address for anonymous callers (set trustProxy behind a proxy). Beyond it, initialize gets 429.',
      // Half of `maxIdle`, so that one owner cannot use all of it. A lower limit would refuse offices behind one address.
      { default: 5_000 },
    ),
    maxCallsPerSession: count('Maximum concurrent requests of one session. Further requests get 429.', { default: 32 }),
    maxCallsPerOwner: count(
      'Maximum concurrent requests of one user or anonymous IP address, also without sessions. Further ones get 429.',
      { default: 256 },
    ),
  },
  {
    title: 'SessionLimits',
    default: {},
    description: `Limits for sessions (protocol versions before ${MODERN_REVISION}).`,
  },
)

const authorize = {
  description: 'Requirement for callers: true for any signed-in user, the name of a policy, or { scope, role }.',
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
    default: list(text('Toolset name.'), 'Toolsets when the optional parameter is absent. Default: none (404).'),
    stateless: flag('No sessions: GET and DELETE get 405. Default: `stateless` of the config.'),
    listen: flag('Clients can subscribe to changes (subscriptions/listen). Default: true on routes with sessions.'),
    authorize,
    challengeScope,
    cors: text('The name of a CORS policy.'),
  },
  { title: 'RouteSettings', required: ['toolsets'], description: 'Toolsets and settings of a path.' },
)

const secrets: JsonSchema = {
  anyOf: [
    list(
      { type: ['string', 'null'], minLength: 1, writeOnly: true, description: 'A long random string.' },
      'Null entries are skipped.',
    ),
    closed(
      { file: text('A file with one secret per line, created if missing. MCP_HOST_SECRETS takes precedence.') },
      { required: ['file'] },
    ),
  ],
  description: 'Secrets: the first one signs, all of them verify. Default: a temporary secret of this process.',
  writeOnly: true,
}

const callable = (description: string): JsonSchema => ({ callable: true, description })

const off: JsonSchema = { const: false, description: 'Disables the plugin.' }

const storeSchema = (properties: Record<string, JsonSchema>): JsonSchema => ({
  description: 'The store of sessions, streams, tasks and logins. Default: memory.',
  anyOf: [
    { const: 'memory', description: 'Memory of this process. The contents are lost when the process ends.' },
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

/** Returns the schema without `required`, because a route overrides single options. Cached per schema. */
export const withoutRequired = (schema: object): JsonSchema =>
  getOrCreate(withoutRequiredOf, schema as JsonSchema, ({ required: _, ...rest }: JsonSchema) => rest)

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
      stateless: flag('Routes serve each request separately, without sessions.', { default: false }),
      secrets,
      tools,
      sessions,
      store,
      ...Object.fromEntries(shared.map(([name, { schema }]) => [name, schema])),
      toolsets,
      routes: mapOf(
        {
          ...route,
          properties: {
            ...route.properties,
            ...Object.fromEntries(routeKeys.map(([key, { schema }]) => [key, schema])),
            store: { ...store, description: 'Replaces the store for this route. Default: `store` of the config.' },
            plugins: pluginMap(
              Object.fromEntries(overrides),
              'Plugin options for this route. false disables a plugin.',
            ),
          },
        },
        "Toolsets and settings by path. ':name?' is an optional parameter.",
        {
          minProperties: 1,
          propertyNames: { pattern: ROUTE_PATH_PATTERN },
          examples: [{ '/': { toolsets: ['clock'] } }],
        },
      ),
      plugins: pluginMap(
        Object.fromEntries(general),
        'Plugins by name, each with its options. false disables a plugin.',
      ),
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
