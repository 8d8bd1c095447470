// The config as JSON Schema (draft 2020-12), the one place where its keys and their defaults are written. check-config.ts
// validates with it, fill-defaults.ts fills in; from it written-schema.ts makes config.schema.json, and `npm run schema`
// the types: a `title` names one, and `tsType` names one of config-parts.ts for what JSON Schema cannot say.
import type { JsonSchema } from '../mcp/protocol.ts'
import { MODERN_REVISION } from '../mcp/revisions.ts'
import { http } from './http-schema.ts'
import { closed, flag, icon, list, oneOrMore, positiveDuration, SCOPE, text } from './schema-parts.ts'
import { collectSections, type Sections } from './sections.ts'
import { tools } from './tools-schema.ts'
import { routeToolsets, toolsets } from './toolsets-schema.ts'

export const ROUTE_PATH_PATTERN = '^/'

/** The `$ref` of a definition in the config schema. */
const toDef = (name: string): string => `#/$defs/${name}`

/** Changes references to a plugin's own `$defs` into references to `<plugin>.<name>` of the config schema. */
function moveRefs(schema: unknown, plugin: string): unknown {
  if (Array.isArray(schema)) return schema.map(item => moveRefs(item, plugin))
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([key, value]) => {
    const isRef = key === '$ref' && typeof value === 'string'
    return [key, isRef ? value.replace(/^#\/\$defs\//, toDef(`${plugin}.`)) : moveRefs(value, plugin)]
  })
  return Object.fromEntries(entries)
}

/** A plugin's schema and its `$defs`, with the names that they have in the config schema. */
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
    tsType: 'ServerSettings',
    required: ['name', 'version'],
    description: 'Who this server says it is.',
    examples: [{ name: 'acme-tools', version: '1.0.0' }],
  },
)

const sessions = closed(
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

const authorize: JsonSchema = {
  description: 'Who may use the route: true for any user, the name of a policy, or an object of scopes and roles.',
  anyOf: [
    { const: true },
    text('The name of a policy.'),
    closed({ scope: oneOrMore('A scope.', SCOPE), role: oneOrMore('A role.') }, { minProperties: 1 }),
  ],
}

const scope = text('A scope.', SCOPE)
const challengeScope: JsonSchema = {
  description: 'Scopes that a client without a token is told to ask for, where authorize names none. Not enforced.',
  anyOf: [scope, list(scope, 'Scopes.', { minItems: 1, uniqueItems: true })],
  examples: ['mcp.tools'],
}

/** The very options of the plugin that it is short for: short-forms.ts. */
const search = closed(
  {
    pinned: list(text('A name, or a glob: * is any run of characters.'), 'Tools that stay in tools/list.', {
      default: [],
      examples: [['get_order', 'stock_*']],
    }),
  },
  { title: 'SearchSettings', description: 'tools/list shows find_tools and call_tool in the place of tools.' },
)

const route = (plugins: JsonSchema): JsonSchema =>
  closed(
    {
      toolsets: routeToolsets,
      default: list(text('The name of a toolset.'), "Toolsets served when the path's optional parameter is absent."),
      stateless: flag("POST only, every request on its own. Default: the config's stateless."),
      listen: flag('Serves subscriptions/listen on a stateless route too. Default: on routes that keep sessions.'),
      authorize,
      challengeScope,
      cors: text('The name of a CORS policy.'),
      search,
      plugins,
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
  tsType: 'Secrets',
}

/** What only code can hold. */
const callable = (tsType: string, description: string): JsonSchema => ({ callable: true, tsType, description })

const off: JsonSchema = { const: false, description: 'Switches the plugin off.' }

const pluginMap = (options: Record<string, JsonSchema>, tsType: string, description: string): JsonSchema => ({
  type: 'object',
  tsType,
  description,
  properties: Object.fromEntries(Object.entries(options).map(([name, schema]) => [name, { anyOf: [off, schema] }])),
  additionalProperties: { anyOf: [off, { type: 'object', description: "The plugin's options." }] },
})

const withoutRequiredOf = new WeakMap<object, JsonSchema>()

/** The schema without its own `required`: a route overrides single options. One object for one schema. */
export function withoutRequired(schema: object): JsonSchema {
  const { required: _, ...rest } = schema as JsonSchema
  const known = withoutRequiredOf.get(schema) ?? rest
  withoutRequiredOf.set(schema, known)
  return known
}

/**
 * The schema of a whole config. `plugins` are the built-in ones, by name: their options stand in `$defs` once, and what
 * is required of them is said where they are general. Without them, options are left to the plugins' own schemas. `sections` are the top-level keys that plugins share.
 */
export function buildConfigSchema(
  plugins: Readonly<Record<string, { readonly options: object; readonly sections?: object }>>,
  sections: Sections = collectSections(Object.entries(plugins)),
): JsonSchema {
  const options = Object.entries(plugins).map(([name, plugin]) => [name, plugin.options as JsonSchema] as const)
  const overrides = options.map(([name]) => [name, { $ref: toDef(name) }] as const)
  const general = options.map(([name, { required }]) => {
    return [name, { $ref: toDef(name), ...(required !== undefined && { required }) }] as const
  })
  const hoisted = options.map(([name, schema]) => [name, hoist(name, withoutRequired(schema))] as const)
  const shared = [...sections].map(([name, { schema }]) => [name, hoist(name, schema as JsonSchema)] as const)
  const $defs = Object.fromEntries([
    ...hoisted.map(([name, { schema }]) => [name, schema] as const),
    ...[...hoisted, ...shared].flatMap(([, { defs }]) => defs),
  ])
  return closed(
    {
      server,
      http,
      stateless: flag('Every route serves request by request, without sessions.', { default: false }),
      secrets,
      tools,
      sessions,
      ...Object.fromEntries(shared.map(([name, { schema }]) => [name, schema])),
      toolsets,
      routes: {
        type: 'object',
        minProperties: 1,
        description: "Paths, and what is served there. ':name?' is an optional parameter.",
        propertyNames: { pattern: ROUTE_PATH_PATTERN },
        additionalProperties: route(
          pluginMap(
            Object.fromEntries(overrides),
            'RoutePluginsSettings',
            'Plugins switched off, or options changed, for this route alone.',
          ),
        ),
        examples: [{ '/': { toolsets: ['clock'] } }],
      },
      plugins: pluginMap(
        Object.fromEntries(general),
        'PluginsSettings',
        'Plugins by name, each with its options; false: off.',
      ),
      configureSession: callable('ConfigureSession', 'Changes what one caller sees.'),
      runSession: callable('RunSession', 'Acts before and after a session.'),
    },
    {
      title: 'Config',
      required: ['server', 'toolsets', 'routes'],
      ...(Object.keys($defs).length > 0 && { $defs }),
    },
  )
}
