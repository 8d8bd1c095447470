// `mcp-host schema`: the config's JSON Schema with every built-in plugin's options.
import { writeFileSync } from 'node:fs'
import { buildConfigSchema } from '../core/config/host-schema.ts'
import { pluginsOf } from '../core/create-host.ts'
import { errorText, StartError } from '../core/errors.ts'
import { builtInPlugins } from '../plugins/index.ts'
import type { VerbOptions } from './main.ts'

export const schemaText = (): string => `${JSON.stringify(buildConfigSchema(pluginsOf(builtInPlugins)), null, 2)}\n`

export async function schema({ write }: VerbOptions): Promise<void> {
  if (write === undefined) process.stdout.write(schemaText())
  else {
    try {
      writeFileSync(write, schemaText())
    } catch (cause) {
      throw new StartError(`${write} cannot be written: ${errorText(cause)}`, { cause })
    }
  }
}
