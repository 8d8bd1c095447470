// Routes: what they serve, where, and what no plugin does for them.
import { config, GOOD_TOOL, type Row, tools, withPlugin, yaml } from './row.ts'

export const ROUTE_ROWS: readonly Row[] = [
  {
    mistake: 'an unknown toolset that is nearly one',
    files: config({
      toolsets: 'toolsets: { clock: ./tools.mjs }',
      routes: 'routes:\n  /:\n    toolsets: clokc # HERE',
    }),
    names: ['"clokc"', '"clock"'],
  },
  {
    mistake: 'an unknown toolset in a list',
    files: config({ routes: 'routes:\n  /:\n    toolsets:\n      - a\n      - weather # HERE' }),
    names: ['"weather"'],
  },
  {
    mistake: 'an unknown toolset as default',
    files: config({ routes: 'routes:\n  /t/:name?:\n    toolsets: ":name"\n    default:\n      - b # HERE' }),
    names: ['"b"', '"a"'],
  },
  {
    mistake: 'two routes of one shape',
    files: config({ routes: 'routes:\n  /x/:one: { toolsets: a }\n  /x/:two: { toolsets: a } # HERE' }),
    names: ["routes['/x/:one']"],
  },
  {
    mistake: 'a route with and without a slash at its end',
    files: config({ routes: 'routes:\n  /x: { toolsets: a }\n  /x/: { toolsets: a } # HERE' }),
    names: ["routes['/x']"],
  },
  {
    mistake: 'two routes of which neither is the narrower',
    files: config({ routes: 'routes:\n  /:id/b: { toolsets: a }\n  /b/:id: { toolsets: a } # HERE' }),
    names: ['/b/b', "routes['/b/b']"],
  },
  {
    mistake: 'a star in a path',
    files: config({ routes: 'routes:\n  /x/*: { toolsets: a } # HERE' }),
    names: ['":name"'],
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
    names: ["routes['/'].plugins['resource-metadata'].resourceMetadataUri", '`resource`'],
  },
  {
    mistake: 'a parameter in braces',
    files: config({ routes: 'routes:\n  "/x/{id}": { toolsets: a } # HERE' }),
    names: ['"{id}"', '":name"'],
  },
  {
    mistake: 'a parameter twice',
    files: config({ routes: 'routes:\n  /:id/:id: { toolsets: a } # HERE' }),
    names: ["routes['/:id/:id']"],
  },
  {
    mistake: 'an optional parameter that is not the last',
    files: config({ routes: 'routes:\n  /:id?/x: { toolsets: a } # HERE' }),
    names: ["routes['/:id?/x']"],
  },
  {
    mistake: 'two slashes in a row',
    files: config({ routes: 'routes:\n  /x//y: { toolsets: a } # HERE' }),
    names: ["routes['/x//y']"],
  },
  {
    mistake: 'a parameter that the path does not have',
    files: config({ routes: 'routes:\n  /t/:name:\n    toolsets: ":category" # HERE' }),
    names: ["routes['/t/:name'].toolsets", '":category"'],
  },
  {
    mistake: 'a parameter next to a toolset',
    files: config({ routes: 'routes:\n  /t/:name:\n    toolsets: [":name", a] # HERE' }),
    names: ["routes['/t/:name'].toolsets", '":name"'],
  },
  {
    mistake: 'no transport',
    files: config({ routes: 'routes:\n  /: { toolsets: a } # HERE', plugins: 'plugins: {}' }),
    severity: 'warning',
    names: ['transport-streamable', 'transport-sse'],
  },
  {
    mistake: 'a transport that is off on a route',
    files: config({
      routes: 'routes:\n  /: { toolsets: a }\n  /x: { toolsets: a, plugins: { transport-streamable: false } } # HERE',
    }),
    severity: 'warning',
    names: ['transport-streamable', 'transport-sse'],
  },
  {
    mistake: 'authorize that no plugin decides',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    authorize: true # HERE' }),
    names: ['auth-jwt', 'auth-introspection'],
  },
  {
    mistake: 'a policy that no plugin knows',
    files: withPlugin(
      '  auth-jwt: { authority: "http://127.0.0.1:9" }\n  resource-metadata: { authorizationServers: ["http://127.0.0.1:9"] }',
      { routes: 'routes:\n  /:\n    toolsets: a\n    authorize: admin # HERE' },
    ),
    names: ['"admin"'],
  },
  {
    mistake: 'a CORS name without the plugin',
    files: config({ routes: 'routes:\n  /:\n    toolsets: a\n    cors: browser # HERE' }),
    names: ['"browser"'],
  },
  {
    mistake: 'a CORS name that is nearly one',
    files: withPlugin('  cors: { policies: { browser: { origins: ["https://a.example"] } } }', {
      routes: 'routes:\n  /:\n    toolsets: a\n    cors: broswer # HERE',
    }),
    names: ['"broswer"', '"browser"'],
  },
  {
    mistake: 'HTTP with SSE on a stateless route',
    files: withPlugin('  transport-sse: {}', { routes: 'routes:\n  /: { toolsets: a, stateless: true } # HERE' }),
    names: ['transport-sse', 'transport-sse'],
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
    names: ['"message"', 'SSE'],
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
    names: ['"echo"'],
  },
  {
    mistake: 'a tool of one name twice in a module',
    files: {
      ...yaml(),
      ...tools(`${GOOD_TOOL}\nexport const other = defineTool({ name: 'echo', handler: () => 'y' }) // HERE`),
    },
    names: ['"echo"'],
  },
  {
    mistake: 'a fixed path that is a route',
    files: withPlugin('  health: { path: / }'),
    at: 'mcp.config.yaml:5',
    names: ['/'],
  },
]
