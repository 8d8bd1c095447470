// Tools, resources and prompts: their keys, names, schemas.
import { code, config, GOOD_TOOL, ofTools, type Row, tools, yaml } from './row.ts'

const tool = (text: string) =>
  ofTools(`export const it = defineTool({\n  name: 'it',\n  handler: () => 1,\n${text}\n})`)
const resource = (text: string) =>
  ofTools(`export const it = defineResource({\n  name: 'it',\n  handler: () => 'x',\n${text}\n})`)
const prompt = (text: string) =>
  ofTools(`export const it = definePrompt({\n  name: 'it',\n  handler: () => 'x',\n${text}\n})`)

const refused = (text: string) => ofTools(`export const t = defineTool({ handler: () => 'x',\n  ${text},\n})`)

export const DEFINITION_ROWS: readonly Row[] = [
  {
    mistake: 'a tool name with a dot',
    files: refused("name: 'mail.send' /* HERE */"),
    severity: 'warning',
    names: ['Claude', 'OpenAI', 'name'],
  },
  {
    mistake: 'a tool name of 65 characters',
    files: refused(`name: '${'a'.repeat(65)}' /* HERE */`),
    severity: 'warning',
    names: ['Claude', '64'],
  },
  {
    mistake: 'an input with anyOf at its root',
    files: refused("name: 't', input: { type: 'object', anyOf: [{ required: ['a'] }] } /* HERE */"),
    severity: 'warning',
    names: ['Claude', 'OpenAI', '`anyOf`'],
  },
  {
    mistake: 'an array without items, and a name with a dot',
    files: refused("name: 'a.b' /* HERE */, input: { type: 'object', properties: { list: { type: 'array' } } }"),
    severity: 'warning',
    names: ['"list"', 'VS Code', 'name'],
  },
  {
    mistake: 'an output in draft-07 that means something else in draft 2020-12',
    files: refused(
      "name: 't', output: { $schema: 'http://json-schema.org/draft-07/schema#', type: 'object', dependencies: { a: ['b'] } } /* HERE */",
    ),
    severity: 'warning',
    names: ['Claude', 'draft-07'],
  },
  {
    mistake: 'more tools than one list page',
    files: {
      ...config({ routes: 'routes:\n  /: # HERE\n    toolsets: a' }),
      ...tools(
        "export const all = Array.from({ length: 501 }, (_, i) => defineTool({ name: 't' + i, handler: () => 'x' }))",
      ),
    },
    severity: 'warning',
    names: ['501', '500', 'search'],
  },
  {
    mistake: 'a misspelt key of a tool',
    files: tool("  descripton: 'x', // HERE"),
    names: ['"description"'],
  },
  {
    mistake: 'a misspelt key that was to protect',
    files: tool("  acces: 'admin', // HERE"),
    names: ['"access"'],
  },
  {
    mistake: 'a tool without a handler',
    files: ofTools("export const it = defineTool({ name: 'it' }) // HERE"),
    names: ['missing'],
  },
  {
    mistake: 'a tool without a name',
    files: ofTools('export const it = defineTool({ handler: () => 1 })'),
    at: 'tools.mjs',
    noLine: 'a definition is found by its name',
    names: ['missing'],
  },
  {
    mistake: 'a handler that was called',
    files: ofTools("const run = () => 'x'\nexport const it = defineTool({ name: 'it',\n  handler: run(), // HERE\n})"),
    names: ['"x"', 'function'],
  },
  {
    mistake: 'an annotation that is not known',
    files: tool('  annotations: {\n    readonlyHint: true, // HERE\n  },'),
    names: ['"readOnlyHint"'],
  },
  {
    mistake: 'a timeout of a tool that is no duration',
    files: tool("  timeout: 'soon', // HERE"),
    names: ['"soon"'],
  },
  {
    mistake: 'a visibility that is not known',
    files: tool("  visibility: 'hidden', // HERE"),
    names: ['"hidden"', "listed'"],
  },
  {
    mistake: 'access without a plugin that enforces it',
    files: tool("  access: 'admin', // HERE"),
    names: ['"admin"', 'tool-policy'],
  },
  {
    mistake: 'a tool name with a space',
    files: ofTools("export const it = defineTool({\n  name: 'say hello', // HERE\n  handler: () => 1 })"),
    severity: 'warning',
    names: ['"say hello"'],
  },
  {
    mistake: 'a tool name of more than 128 characters',
    files: ofTools(`export const it = defineTool({\n  name: '${'n'.repeat(129)}', // HERE\n  handler: () => 1 })`),
    severity: 'warning',
    names: ['64'],
  },
  {
    mistake: 'an input of another type than object',
    files: tool("  input: { type: 'string' }, // HERE"),
    names: ['`type`', '"object"'],
  },
  {
    mistake: 'an input that is no valid JSON Schema',
    files: tool(
      "  input: {\n    type: 'object',\n    properties: {\n      a: { type: 'strng' }, // HERE\n    },\n  },",
    ),
    names: ['2020-12', '#/properties/a/type', '"strng"', '"string"'],
  },
  {
    mistake: 'an input of a dialect that is not known',
    files: tool("  input: { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object' }, // HERE"),
    names: ['supported', '2020-12'],
  },
  {
    mistake: 'an input that refers to elsewhere',
    files: tool("  input: { type: 'object', properties: { a: { $ref: 'https://a.example/b.json' } } }, // HERE"),
    names: ['"https://a.example/b.json"'],
  },
  {
    mistake: 'an output that is no schema',
    files: tool("  output: 'string', // HERE"),
    names: ['JSON', '4.2'],
  },
  {
    mistake: 'a resource with neither uri nor uriTemplate',
    files: ofTools("export const it = defineResource({ name: 'it', handler: () => 'x' }) // HERE"),
    names: ['"it"', '`uri`', '`uriTemplate`'],
  },
  {
    mistake: 'a resource with uri and uriTemplate',
    files: ofTools(
      "export const it = defineResource({ name: 'it', uri: 'a://b', uriTemplate: 'a://{c}', handler: () => 'x' }) // HERE",
    ),
    names: ['"it"', '`uri`', '`uriTemplate`'],
  },
  {
    mistake: 'a uri without a scheme',
    files: ofTools("export const it = defineResource({ name: 'it', uri: '/notes', handler: () => 'x' }) // HERE"),
    names: ['"/notes"', 'URI'],
  },
  {
    mistake: 'completion of a variable that is not there',
    files: ofTools(
      "export const it = defineResource({ name: 'it', uriTemplate: 'a://{id}', complete: { di: () => [] }, handler: () => 'x' }) // HERE",
    ),
    names: ['`complete.di`', 'uriTemplate'],
  },
  {
    mistake: 'a misspelt key of a resource',
    files: resource("  uri: 'a://b',\n  mimetype: 'text/plain', // HERE"),
    names: ['"mimeType"'],
  },
  {
    mistake: 'an argument of a prompt that is text',
    files: prompt("  arguments: {\n    topic: 'what about', // HERE\n  },"),
    names: ['"what about"'],
  },
  {
    mistake: 'an argument of a prompt with a type',
    files: prompt("  arguments: {\n    topic: { type: 'string' }, // HERE\n  },"),
    names: ['description'],
  },
  {
    mistake: 'a misspelt key of a tool that the config holds',
    files: {
      ...code(
        "export default {\n  server: { name: 'a', version: '1' },\n  toolsets: { a: [\n    defineTool({ name: 'it', handler: () => 1,\n      titel: 'It', // HERE\n    } as never),\n  ] },\n  routes: { '/': { toolsets: 'a' } },\n  plugins: { 'transport-streamable': {} },\n}",
      ),
    },
    names: ['"title"'],
  },
  {
    mistake: 'an input of a tool that the config holds',
    files: {
      ...code(
        "export default {\n  server: { name: 'a', version: '1' },\n  toolsets: { a: [\n    defineTool({ name: 'it', handler: () => 1,\n      input: { type: 'array' }, // HERE\n    }),\n  ] },\n  routes: { '/': { toolsets: 'a' } },\n  plugins: { 'transport-streamable': {} },\n}",
      ),
    },
    names: ['`type`', '"object"'],
  },
  {
    mistake: 'a definition created without defineTool, next to a valid one',
    files: { ...yaml(), ...tools(`export const bare = { name: 'bare', handler: () => 1 } // HERE\n${GOOD_TOOL}`) },
    severity: 'warning',
    names: ['"bare"'],
  },
]
