// Routes: what they serve, where, and what no plugin does for them.
import { config, GOOD_TOOL, type Row, tools, withPlugin, yaml } from './row.ts'

export const ROUTE_ROWS: readonly Row[] = [
  {
    mistake: 'an unknown toolset that is nearly one',
    files: config({
      toolsets: 'toolsets: { clock: ./tools.mjs }',
      routes: 'routes:\n  /:\n    toolsets: clokc # HERE',
    }),
    says: ['there is no toolset "clokc"', 'did you mean "clock"?'],
  },
  {
    mistake: 'an unknown toolset in a list',
    files: config({ routes: 'routes:\n  /:\n    toolsets:\n      - a\n      - weather # HERE' }),
    says: ['there is no toolset "weather"', 'there are: a'],
  },
  {
    mistake: 'an unknown toolset as default',
    files: config({ routes: 'routes:\n  /t/:name?:\n    toolsets: ":name"\n    default:\n      - b # HERE' }),
    says: ['there is no toolset "b"', 'did you mean "a"?'],
  },
  {
    mistake: 'two routes of one shape',
    files: config({ routes: 'routes:\n  /x/:one: { toolsets: a }\n  /x/:two: { toolsets: a } # HERE' }),
    says: ["it and routes['/x/:one'] are one path", 'change one of them'],
  },
  {
    mistake: 'a route with and without a slash at its end',
    files: config({ routes: 'routes:\n  /x: { toolsets: a }\n  /x/: { toolsets: a } # HERE' }),
    says: ["it and routes['/x'] are one path", 'change one of them'],
  },
  {
    mistake: 'two routes of which neither is the narrower',
    files: config({ routes: 'routes:\n  /:id/b: { toolsets: a }\n  /b/:id: { toolsets: a } # HERE' }),
    says: ['both match /b/b', "say what is there with routes['/b/b']"],
  },
  {
    mistake: 'a star in a path',
    files: config({ routes: 'routes:\n  /x/*: { toolsets: a } # HERE' }),
    says: ['"*" is neither plain text', 'a parameter such as ":name"'],
  },
  {
    mistake: 'an option for all routes that is wrong on a route with options of its own',
    files: config({
      routes: 'routes:\n  /: { toolsets: a, plugins: { resource-metadata: { scopesSupported: [read] } } }',
      plugins: `plugins:
  transport-streamable: {}
  resource-metadata:
    resourceMetadataUri: https://example.com/metadata # HERE`,
    }),
    says: ["routes['/'].plugins['resource-metadata'].resourceMetadataUri", 'it needs `resource`'],
  },
  {
    mistake: 'a parameter in braces',
    files: config({ routes: 'routes:\n  "/x/{id}": { toolsets: a } # HERE' }),
    says: ['"{id}" is neither plain text', 'a parameter such as ":name"'],
  },
  {
    mistake: 'a parameter twice',
    files: config({ routes: 'routes:\n  /:id/:id: { toolsets: a } # HERE' }),
    says: ["routes['/:id/:id']", 'a parameter occurs twice'],
  },
  {
    mistake: 'an optional parameter that is not the last',
    files: config({ routes: 'routes:\n  /:id?/x: { toolsets: a } # HERE' }),
    says: ["routes['/:id?/x']", 'only the last parameter may be optional'],
  },
  {
    mistake: 'two slashes in a row',
    files: config({ routes: 'routes:\n  /x//y: { toolsets: a } # HERE' }),
    says: ["routes['/x//y']", 'no request\'s path has "" between its slashes'],
  },
  {
    mistake: 'a parameter that the path does not have',
    files: config({ routes: 'routes:\n  /t/:name:\n    toolsets: ":category" # HERE' }),
    says: ["routes['/t/:name'].toolsets", 'the path has no parameter ":category"'],
  },
  {
    mistake: 'a parameter next to a toolset',
    files: config({ routes: 'routes:\n  /t/:name:\n    toolsets: [":name", a] # HERE' }),
    says: ["routes['/t/:name'].toolsets", '":name" stands alone'],
  },
  {
    mistake: 'no transport',
    files: config({ routes: 'routes:\n  /: { toolsets: a } # HERE', plugins: 'plugins: {}' }),
    severity: 'warning',
    says: ['nothing serves this route', 'switch on transport-streamable or transport-sse'],
  },
  {
    mistake: 'a transport that is off on a route',
    files: config({
      routes: 'routes:\n  /: { toolsets: a }\n  /x: { toolsets: a, plugins: { transport-streamable: false } } # HERE',
    }),
    severity: 'warning',
    says: ['nothing serves this route', 'switch on transport-streamable or transport-sse'],
  },
  {
    mistake: 'authorize that no plugin decides',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    authorize: true # HERE' }),
    says: ['no plugin of this route can decide it', 'switch on auth-jwt or auth-introspection'],
  },
  {
    mistake: 'a policy that no plugin knows',
    files: withPlugin(
      '  auth-jwt: { authority: "http://127.0.0.1:9" }\n  resource-metadata: { authorizationServers: ["http://127.0.0.1:9"] }',
      { routes: 'routes:\n  /:\n    toolsets: a\n    authorize: admin # HERE' },
    ),
    says: ['no plugin of this route knows the policy "admin"', "{ scope: 'admin' }"],
  },
  {
    mistake: 'a CORS name without the plugin',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    cors: browser # HERE' }),
    says: ['no plugin of this route knows "browser"', 'switch on cors'],
  },
  {
    mistake: 'a CORS name that is nearly one',
    files: withPlugin('  cors: { policies: { browser: { origins: ["https://a.example"] } } }', {
      routes: 'routes:\n  /:\n    toolsets: a\n    cors: broswer # HERE',
    }),
    says: ['there is no policy "broswer"', 'did you mean "browser"?'],
  },
  {
    mistake: 'two authenticators on a route',
    files: withPlugin(
      '  auth-jwt: { authority: "http://127.0.0.1:9" }\n  auth-introspection: { endpoint: "http://127.0.0.1:9/i", clientId: c, clientSecret: s }',
      { routes: 'routes:\n  /: { toolsets: a } # HERE' },
    ),
    says: ['both auth-jwt and auth-introspection find out who calls', 'switch one of them off on this route'],
  },
  {
    mistake: 'HTTP with SSE on a stateless route',
    files: withPlugin('  transport-sse: {}', { routes: 'routes:\n  /: { toolsets: a, stateless: true } # HERE' }),
    says: ['it is stateless, and transport-sse needs sessions', "set plugins: { 'transport-sse': false } on the route"],
  },
  {
    mistake: 'a toolset that has the address of a transport',
    files: {
      ...yaml({
        toolsets: 'toolsets: { message: ./tools.mjs }',
        routes: 'routes:\n  /t/:name: { toolsets: ":name" } # HERE',
        plugins: 'plugins: { transport-streamable: {}, transport-sse: {} }',
      }),
      ...tools(GOOD_TOOL),
    },
    says: ['the toolset "message" would have the address of the SSE transport', 'rename it'],
  },
  {
    mistake: 'a tool of one name in two toolsets of a route',
    files: {
      ...yaml({
        toolsets: 'toolsets: { a: ./tools.mjs, b: ./more.mjs }',
        routes: 'routes: { /: { toolsets: [a, b] } }',
      }),
      ...tools(GOOD_TOOL),
      'more.mjs': tools(`\n${GOOD_TOOL} // HERE`)['tools.mjs'] ?? '',
    },
    says: ['two tools are called "echo"', 'in toolset "a" and in toolset "b"'],
  },
  {
    mistake: 'a tool of one name twice in a module',
    files: {
      ...yaml(),
      ...tools(`${GOOD_TOOL}\nexport const other = defineTool({ name: 'echo', handler: () => 'y' }) // HERE`),
    },
    says: ['toolset "a" has two tools called "echo"', 'rename one of them'],
  },
  {
    mistake: 'a fixed path that is a route',
    files: withPlugin('  health: { path: / }'),
    at: 'mcp.config.yaml:5',
    says: ['both serve /', 'give one of them another path'],
  },
]
