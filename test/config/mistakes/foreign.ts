// What other frameworks for MCP call things: recognised, and told the name and the form that are right here.
import { FOLDER, ofTools, type Row, yaml } from './row.ts'

const ZOD = new URL('node_modules/zod/index.js', `file://${FOLDER}/`).href
const ZOD_3 = new URL('node_modules/zod/v3/index.js', `file://${FOLDER}/`).href
const VALIBOT = new URL('node_modules/valibot/dist/index.mjs', `file://${FOLDER}/`).href

const tool = (text: string, before = '') =>
  ofTools(`${before}\nexport const it = defineTool({\n  name: 'it',\n${text}\n})`)
const handled = (text: string, before = '') => tool(`  handler: () => 1,\n${text}`, before)

export const FOREIGN_ROWS: readonly Row[] = [
  {
    mistake: 'execute for handler',
    files: tool('  execute: () => 1, // HERE'),
    names: ['"handler"', 'handler'],
  },
  {
    mistake: 'run for handler',
    files: tool('  run: () => 1, // HERE'),
    names: ['"handler"', 'handler'],
  },
  {
    mistake: 'callback for handler',
    files: tool('  callback: () => 1, // HERE'),
    names: ['"handler"', 'handler'],
  },
  {
    mistake: 'parameters for input',
    files: handled("  parameters: { type: 'object' }, // HERE"),
    names: ['"input"', 'input', 'z.object'],
  },
  {
    mistake: 'inputSchema for input',
    files: handled("  inputSchema: { type: 'object' }, // HERE"),
    names: ['"input"', 'input', 'z.object'],
  },
  {
    mistake: 'args for input',
    files: handled('  args: {}, // HERE'),
    names: ['"input"', 'input', 'z.object'],
  },
  {
    mistake: 'schema for input',
    files: handled('  schema: {}, // HERE'),
    names: ['"input"', 'input', 'z.object'],
  },
  {
    mistake: 'outputSchema for output',
    files: handled("  outputSchema: { type: 'object' }, // HERE"),
    names: ['"output"', 'output', 'z.object'],
  },
  {
    mistake: 'scopes for access',
    files: handled("  scopes: ['admin'], // HERE"),
    names: ['"access"', 'access'],
  },
  {
    mistake: 'load for the handler of a resource',
    files: ofTools("export const it = defineResource({ name: 'it', uri: 'a://b',\n  load: () => 'x', // HERE\n})"),
    names: ['"handler"', 'handler'],
  },
  {
    mistake: 'template for uriTemplate',
    files: ofTools(
      "export const it = defineResource({ name: 'it', handler: () => 'x',\n  template: 'a://{b}', // HERE\n})",
    ),
    names: ['"uriTemplate"', 'uriTemplate', 'notes://{id}'],
  },
  {
    mistake: 'argsSchema for the arguments of a prompt',
    files: ofTools("export const it = definePrompt({ name: 'it', handler: () => 'x',\n  argsSchema: {}, // HERE\n})"),
    names: ['"arguments"', 'arguments'],
  },
  {
    mistake: 'a raw shape of zod',
    files: handled('  input: { name: z.string() }, // HERE', `import { z } from '${ZOD}'`),
    names: ['"name"', 'z.object'],
  },
  {
    mistake: 'a raw shape of zod 3',
    files: handled('  input: { name: z.string() }, // HERE', `import { z } from '${ZOD_3}'`),
    names: ['zod', '4.2'],
  },
  {
    mistake: 'an object of zod 3',
    files: handled('  input: z.object({ name: z.string() }), // HERE', `import { z } from '${ZOD_3}'`),
    names: ['JSON', 'npm install zod@latest'],
  },
  {
    mistake: 'a raw object of valibot',
    files: handled('  input: v.object({ name: v.string() }), // HERE', `import * as v from '${VALIBOT}'`),
    names: ['JSON', 'toStandardJsonSchema(v.object'],
  },
  {
    mistake: 'a raw shape of valibot',
    files: handled('  input: { name: v.string() }, // HERE', `import * as v from '${VALIBOT}'`),
    names: ['toStandardJsonSchema(v.object'],
  },
  {
    mistake: 'an output that is a raw shape of zod',
    files: handled('  output: { name: z.string() }, // HERE', `import { z } from '${ZOD}'`),
    names: ['"name"', 'z.object'],
  },
  {
    mistake: 'properties in the place of a JSON Schema',
    files: handled("  input: { name: { type: 'string' } }, // HERE"),
    names: ['"name"'],
  },
  {
    mistake: 'a plain object in the place of a tool',
    files: { ...yaml(), 'tools.mjs': "\nexport default { name: 'it', execute: () => 1 } // HERE" },
    names: ['"it"', 'defineTool'],
  },
  {
    mistake: 'server.tool(...) of another framework',
    files: {
      ...yaml(),
      'tools.mjs': "const server = { tool() {} }\nserver.tool('it', {}, () => 1) // HERE\nexport default server",
    },
    names: ['defineTool'],
  },
  {
    mistake: 'server.registerPrompt(...) of another framework',
    files: {
      ...yaml(),
      'tools.mjs': "const server = { registerPrompt() {} }\nserver.registerPrompt('it', {}, () => 1) // HERE\n",
    },
    names: ['registerPrompt', 'definePrompt'],
  },
]
