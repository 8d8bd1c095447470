// `mcp-host import`: adds the MCP servers of a client's configuration file to the config.
import { resolve } from 'node:path'
import { printable } from '../client/text.ts'
import { CONFIG_OPTION, defineCommand } from './command.ts'
import { readText } from './context.ts'
import { addToConfig, findToolset, freeRoute, isCode, loadOrCreateConfig, printNextStep } from './edit-config.ts'
import { readClientFile } from './upstream/read-client-file.ts'

export const importCommand = defineCommand({
  summary: 'Add the MCP servers of a client to the config',
  example: '~/.cursor/mcp.json',
  positionals: ['FILE'],
  options: CONFIG_OPTION,
  notes: `FILE: claude_desktop_config.json, .mcp.json, or the mcp.json of VS Code or Cursor.
Secret variables are not copied: servers get them from the environment of mcp-host.`,
  async run({ config }, [given = ''], context) {
    const { cwd, print, say } = context
    const source = resolve(cwd, given)
    const text = readText(source, given)
    const loaded = await loadOrCreateConfig({ config }, context)
    const { servers, notes } = readClientFile(source, text, isCode(loaded.file))
    const isNew = ({ name }: { readonly name: string }) => findToolset(loaded.config, name) === undefined
    const taken = servers
      .filter(server => !isNew(server))
      .map(({ name }) => `${name}: left out, because it exists at ${findToolset(loaded.config, name)}`)
    for (const note of [...notes, ...taken]) say(printable(note))
    const added = servers.filter(isNew)
    if (added.length === 0) return print('Nothing to add.')
    const toolsets = added.map(({ name, value }) => {
      return { plugin: 'upstream', key: 'servers', name, value, route: freeRoute(loaded.config, name, 'upstream') }
    })
    await addToConfig(loaded, toolsets, context)
    const variables = [...new Set(added.flatMap(one => one.variables))]
    if (variables.length > 0)
      print(printable(`Set in the environment of mcp-host, or in an --env-file: ${variables.join(', ')}`))
    printNextStep(context, config)
  },
})
