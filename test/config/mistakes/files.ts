// Files: not there, empty, broken, of another kind, two of them.
import { code, config, GOOD_TOOL, type Row, tools, yaml } from './row.ts'

export const FILE_ROWS: readonly Row[] = [
  {
    mistake: 'no config at all',
    files: { 'readme.txt': '' },
    noLine: 'there is no file',
    names: ['mcp.config.ts'],
  },
  {
    mistake: 'an empty config',
    files: { 'mcp.config.yaml': '' },
    at: 'mcp.config.yaml',
    noLine: 'the file has none',
    names: ['server', 'toolsets', 'routes'],
  },
  {
    mistake: 'a config in code without a default export',
    files: code('\nexport const config = defineConfig({} as never)'),
    at: 'mcp.config.ts',
    noLine: 'what is missing may stand anywhere',
    names: ['`export default defineConfig({ … })`'],
  },
  {
    mistake: 'a TypeScript syntax error in a config',
    files: code("export default {\n  server: { name: 'a' }\n  toolsets: {}, // HERE\n}"),
    names: ['"toolsets"'],
  },
  {
    mistake: 'a JavaScript syntax error in a config',
    files: { 'mcp.config.mjs': "export default {\n  server: { name: 'a' }\n  toolsets: {}, // HERE\n}" },
    names: ['cannot be loaded', "Unexpected identifier 'toolsets'"],
  },
  {
    mistake: 'JSON with a comma too many',
    files: { 'mcp.config.json': '{\n  "server": { "name": "a", "version": "1" },\n}' },
    at: 'mcp.config.json:3',
    names: ['JSON'],
  },
  {
    mistake: 'JSON with comments',
    files: { 'mcp.config.json': '{\n  // HERE\n  "server": {}\n}' },
    names: ['JSON'],
  },
  {
    mistake: 'JSON with a key twice',
    files: { 'mcp.config.json': '{\n  "server": {},\n  "server": {}\n}' },
    at: 'mcp.config.json:3',
    names: ['key'],
  },
  {
    mistake: 'YAML that is indented by a tab',
    files: { 'mcp.config.yaml': 'server:\n\tname: a # HERE\n' },
    names: ['YAML'],
  },
  {
    mistake: 'a YAML key without a colon above its values',
    files: { 'mcp.config.yaml': 'server: { name: a }\nroutes # HERE\n  /mcp: { toolsets: a }\n' },
    names: ['YAML'],
  },
  {
    mistake: 'YAML with a key that has no colon, above other keys',
    files: { 'mcp.config.yaml': 'server: { name: a }\nroutes\n  /mcp: { toolsets: a }\nplugins: {}\n' },
    at: 'mcp.config.yaml:2',
    names: ['YAML'],
  },
  {
    mistake: 'YAML with a key twice',
    files: { 'mcp.config.yaml': 'server: {}\nroutes: {}\nserver: {} # HERE\n' },
    names: ['"server"', 'line 1'],
  },
  {
    mistake: 'a config that throws',
    files: code("const url = ''\nif (url === '') throw new Error('no URL') // HERE\nexport default {}"),
    names: ['URL'],
  },
  {
    mistake: 'a config that reads a file that is not there',
    files: code(
      "import { readFileSync } from 'node:fs'\nexport default { secrets: [readFileSync('gone.txt', 'utf8')] } // HERE",
    ),
    names: ['ENOENT'],
  },
  {
    mistake: 'two configs in one folder',
    files: { ...config({}), 'mcp.config.yml': 'server: {}' },
    at: 'mcp.config.yaml:1',
    severity: 'warning',
    names: ['mcp.config.yaml', 'mcp.config.yml', '--config'],
  },
  {
    mistake: 'a config that is a list',
    files: { 'mcp.config.yaml': '- server # HERE' },
    names: ['list', 'object'],
  },
  {
    mistake: 'a toolset of a file that is not there',
    files: { ...yaml({ toolsets: 'toolsets:\n  a: ./tool.mjs # HERE' }), ...tools(GOOD_TOOL) },
    names: ['<folder>/tool.mjs', '"./tools.mjs"'],
  },
  {
    mistake: 'a toolset of a file with another extension',
    files: { ...yaml({ toolsets: 'toolsets:\n  a:\n    - ./tools.ts # HERE' }), ...tools(GOOD_TOOL) },
    names: ['<folder>/tools.ts', '"./tools.mjs"'],
  },
  {
    mistake: 'a toolset of a folder that is not there',
    files: { ...yaml({ toolsets: 'toolsets:\n  a: ./tool/clock.mjs # HERE' }), ...tools(GOOD_TOOL) },
    names: ['<folder>/tool/clock.mjs', '<folder>/tool'],
  },
  {
    mistake: 'a glob that matches nothing',
    files: { ...yaml({ toolsets: 'toolsets:\n  a: ./tools/*.ts # HERE' }), ...tools(GOOD_TOOL) },
    names: ['./tools/*.ts'],
  },
  {
    mistake: 'a toolset of a module that exports nothing',
    files: { ...yaml(), 'tools.mjs': '' },
    at: 'tools.mjs',
    noLine: 'what is missing may stand anywhere',
    names: ['defineTool', 'defineResource', 'definePrompt'],
  },
  {
    mistake: 'a toolset of a module that exports something else',
    files: { ...yaml(), 'tools.mjs': 'export const answer = 42' },
    at: 'tools.mjs',
    noLine: 'what is missing may stand anywhere',
    names: ['defineTool', 'defineResource', 'definePrompt'],
  },
]
