// `mcp-host add upstream`: adds an MCP server and a route for its toolset to the config.
import { resolve } from 'node:path'
import { printable } from '../../client/text.ts'
import { readConfig } from '../config.ts'
import { type CommandContext, usage } from '../context.ts'
import { addToConfig, assertFree, freeRoute } from '../edit-config.ts'

const NAME = /^[A-Za-z0-9_-]{1,57}$/

export async function addServer(
  { config }: { config?: string | undefined },
  [name = '', first = '', ...args]: readonly string[],
  context: CommandContext,
): Promise<void> {
  if (!NAME.test(name))
    throw usage(`"${printable(name)}" is not a valid toolset name: use 1 to 57 characters of A-Z, a-z, 0-9, _ and -`)
  if (first === '')
    throw usage('give the URL of the server, or its command: mcp-host add upstream NAME -- COMMAND ARGUMENT...')
  const isUrl = /^https?:\/\//i.test(first)
  if (isUrl && (args.length > 0 || !URL.canParse(first))) throw usage(`${printable(first)} is not a valid server URL`)
  const loaded = await readConfig({ config }, context)
  assertFree(loaded.config, name, 'choose another name')
  const value = isUrl ? { url: first } : { command: first, ...(args.length > 0 && { args }) }
  const route = freeRoute(loaded.config, name, 'upstream')
  await addToConfig(
    resolve(context.cwd, loaded.file),
    [{ plugin: 'upstream', key: 'servers', name, value, route }],
    context,
  )
}
