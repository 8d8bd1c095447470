// `mcp-host schema`: writes the config's JSON Schema with every built-in plugin's options.
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { writtenSchema } from '../core/config/written-schema.ts'
import { pluginsOf } from '../core/create-host.ts'
import { errorText, StartError } from '../core/http/errors.ts'
import { builtInPlugins } from '../plugins/index.ts'
import { defineCommand } from './command.ts'

export const schemaText = (): string => `${JSON.stringify(writtenSchema(pluginsOf(builtInPlugins)), null, 2)}\n`

export const schemaCommand = defineCommand({
  summary: 'Print the JSON Schema of the config, for editors',
  example: '--write config.schema.json',
  options: { write: { value: '<file>', help: 'Write to this file instead of stdout' } },
  async run({ write }, _positionals, { stdout, cwd }) {
    if (write === undefined) stdout.write(schemaText())
    else {
      try {
        writeFileSync(resolve(cwd, write), schemaText())
      } catch (cause) {
        throw new StartError('MH3003', `${write} cannot be written: ${errorText(cause)}`, { cause })
      }
    }
  },
})
