// Imports that fail, and modules that throw: the author's own file and line.
import { code, config, GOOD_TOOL, ofTools, type Row, tools, yaml } from './row.ts'

const rest = "export default defineConfig({ server: { name: 'a', version: '1' }, toolsets: {}, routes: {} })"

export const IMPORT_ROWS: readonly Row[] = [
  {
    mistake: 'a config that imports a package that is not installed',
    files: code(`import 'no-such-package' // HERE\n${rest}`),
    names: ['no-such-package'],
  },
  {
    mistake: 'a tool that imports a package that is not installed',
    files: ofTools(`import { z } from '@acme/no-such/part' // HERE\n${GOOD_TOOL}`),
    names: ['toolsets.a', '@acme/no-such'],
  },
  {
    mistake: 'a misspelt package name',
    files: {
      ...ofTools(`import { z } from 'zoddd' // HERE\n${GOOD_TOOL}`),
      'package.json': '{ "type": "module", "dependencies": { "zod": "4" } }',
    },
    names: ['zoddd'],
  },
  {
    mistake: 'a tool that imports a file that is not there',
    files: {
      ...ofTools(`import { now } from './clokc.mjs' // HERE\n${GOOD_TOOL}`),
      'clock.mjs': 'export const now = 1',
    },
    names: ['clokc.mjs'],
  },
  {
    mistake: 'a config that imports a file that is not there',
    files: { ...code(`import './tools/clock.ts' // HERE\n${rest}`), 'tools/clocks.ts': 'export const clock = 1' },
    names: ['tools/clock.ts'],
  },
  {
    mistake: 'an import without its extension',
    files: { ...ofTools(`import { now } from './clock' // HERE\n${GOOD_TOOL}`), 'clocks.mjs': '' },
    names: ['clock'],
  },
  {
    mistake: 'an import of a missing module in an import of a tool',
    files: { ...ofTools(`import './inner.mjs'\n${GOOD_TOOL}`), 'inner.mjs': "\nimport 'gone-package' // HERE" },
    names: ['toolsets.a', 'gone-package'],
  },
  {
    mistake: 'an import of a name that is not exported',
    files: {
      ...ofTools(`import { tody } from './clock.mjs' // HERE\n${GOOD_TOOL}\ntody`),
      'clock.mjs': 'export const today = 1',
    },
    names: ["'tody'", "'./clock.mjs'"],
  },
  {
    mistake: 'a default import of a module without default export',
    files: {
      ...ofTools(`import clock from './clock.mjs' // HERE\n${GOOD_TOOL}\nclock`),
      'clock.mjs': 'export const now = 1',
    },
    names: ["'default'", "'./clock.mjs'"],
  },
  {
    mistake: 'an import by an alias that nothing resolves',
    files: ofTools(`import { now } from '@/clock' // HERE\n${GOOD_TOOL}`),
    names: ['@/clock'],
  },
  {
    mistake: 'a tool that throws at its top',
    files: ofTools(`const key = undefined\nconst length = key.length // HERE\n${GOOD_TOOL}\nlength`),
    names: ['toolsets.a', 'Cannot read properties of undefined'],
  },
  {
    mistake: 'a tool in TypeScript that throws at its top',
    files: {
      ...yaml({ toolsets: 'toolsets: { a: ./tools.ts }' }),
      ...tools(
        `interface Key {\n  readonly text: string\n}\nconst key: Key | undefined = undefined\nthrow new Error('no key', { cause: key }) // HERE\n${GOOD_TOOL}`,
        'ts',
      ),
    },
    names: ['toolsets.a', 'no key'],
  },
  {
    mistake: 'a module of a tool that throws in a function',
    files: {
      ...ofTools(`import { read } from './read.mjs'\nread()\n${GOOD_TOOL}`),
      'read.mjs': "export function read() {\n  throw new Error('no database') // HERE\n}",
    },
    names: ['toolsets.a', 'no database'],
  },
  {
    mistake: 'a JavaScript syntax error in a tool',
    files: ofTools(`const x = {\n  a: 1\n  b: 2 // HERE\n}\n${GOOD_TOOL}`),
    names: ['toolsets.a', "Unexpected identifier 'b'"],
  },
  {
    mistake: 'a JavaScript syntax error in an import of a tool',
    files: {
      ...ofTools(`import './inner.mjs'\n${GOOD_TOOL}`),
      'inner.mjs': 'export const x = {\n  a: 1\n  b: 2 // HERE\n}',
    },
    names: ['toolsets.a', "Unexpected identifier 'b'"],
  },
  {
    mistake: 'a TypeScript syntax error in a tool',
    files: {
      ...yaml({ toolsets: 'toolsets: { a: ./tools.ts }' }),
      ...tools(`const x = {\n  a: 1\n  b: 2 // HERE\n}\n${GOOD_TOOL}`, 'ts'),
    },
    names: ['toolsets.a', 'Expected "}" but found "b"'],
  },
  {
    mistake: 'a CommonJS tool that requires a missing module',
    files: {
      ...yaml({ toolsets: 'toolsets: { a: ./tools.cjs }' }),
      'tools.cjs': "\nconst x = require('gone-package') // HERE\n",
    },
    names: ['toolsets.a', 'gone-package'],
  },
  {
    mistake: 'a plugin that imports a missing package',
    files: {
      ...config({ plugins: 'plugins:\n  transport-streamable: {}\n  ./audit.mjs: {}' }),
      'audit.mjs': "import 'gone-package' // HERE",
    },
    names: ["plugins['./audit.mjs']", 'gone-package'],
  },
]
