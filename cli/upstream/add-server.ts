// `mcp-host add upstream`: adds an MCP server and a route for its toolset to the config.
import { printable } from '../../client/text.ts'
import { checkServerUrl } from '../client/stored-logins.ts'
import { type CommandContext, usage } from '../context.ts'
import { addToConfig, assertFree, freeRoute, loadOrCreateConfig, printNextStep } from '../edit-config.ts'

const NAME = /^[A-Za-z0-9_-]{1,57}$/
/** Matches URLs. Commands have no scheme, port or domain. */
const URL_LIKE = /^(?:https?:\/\/|localhost\b|[\w.-]+:\d+(?:\/|$)|[\w-]+(?:\.[\w-]+)+\/)/i
const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i

export async function addServer(
  { config }: { config?: string | undefined },
  [name = '', first = '', ...args]: readonly string[],
  context: CommandContext,
): Promise<void> {
  if (!NAME.test(name))
    throw usage(`"${printable(name)}" is not a valid toolset name: use 1 to 57 characters of A-Z, a-z, 0-9, _ and -`)
  if (first === '')
    throw usage('give the URL of the server, or its command: mcp-host add upstream NAME -- COMMAND ARGUMENT...')
  const [, scheme = ''] = SCHEME.exec(first) ?? []
  if (scheme !== '' && !/^https?$/i.test(scheme)) throw usage(`"${scheme}" is not supported: use an http or https URL`)
  const isUrl = URL_LIKE.test(first)
  if (isUrl && args.length > 0) throw usage(`unexpected "${printable(args.join(' '))}" after the URL`)
  const url = isUrl ? checkServerUrl(first) : ''
  const loaded = await loadOrCreateConfig({ config }, context)
  assertFree(loaded.config, name, 'choose another name')
  const value = isUrl ? { url } : { command: first, ...(args.length > 0 && { args }) }
  const route = freeRoute(loaded.config, name, 'upstream')
  await addToConfig(loaded, [{ plugin: 'upstream', key: 'servers', name, value, route }], context)
  printNextStep(context, config)
}
