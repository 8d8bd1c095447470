// What other frameworks for MCP call things: recognised, and told the name and the form that are right here.
import { FOLDER, ofTools, type Row, yaml } from './row.ts'

const ZOD = new URL('node_modules/zod/index.js', `file://${FOLDER}/`).href
const ZOD_3 = new URL('node_modules/zod/v3/index.js', `file://${FOLDER}/`).href
const VALIBOT = new URL('node_modules/valibot/dist/index.mjs', `file://${FOLDER}/`).href

const handled = (text: string, before = '') =>
  ofTools(`${before}\nexport const it = defineTool({\n  name: 'it',\n  handler: () => 1,\n${text}\n})`)

export const FOREIGN_ROWS: readonly Row[] = [
  {
    mistake: 'inputSchema for input',
    files: handled("  inputSchema: { type: 'object' }, // HERE"),
    names: ['"input"'],
  },
  {
    mistake: 'outputSchema for output',
    files: handled("  outputSchema: { type: 'object' }, // HERE"),
    names: ['"output"'],
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
    files: { ...yaml(), 'tools.mjs': "\nexport default { name: 'it', handler: () => 1 } // HERE" },
    names: ['"it"', 'defineTool'],
  },
  {
    mistake: 'server.tool(...) of another framework',
    files: {
      ...yaml(),
      'tools.mjs': "const server = { tool() {} }\nserver.tool('it', {}, () => 1)\nexport default server",
    },
    at: 'tools.mjs',
    noLine: 'nothing is exported',
    names: ['defineTool'],
  },
]
