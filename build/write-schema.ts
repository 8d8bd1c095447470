// `npm run schema`: writes config.schema.json, which editors read, from the schemas of the config and of the built-in plugins.
// A test compares it.
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { schemaText } from '../cli/schema.ts'

writeFileSync(fileURLToPath(new URL('../config.schema.json', import.meta.url)), schemaText())
