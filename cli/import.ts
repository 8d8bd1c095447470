// `mcp-host import`: adds the MCP servers of a client's configuration file to the config.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { printable } from '../client/text.ts'
import { errorText } from '../core/http/errors.ts'
import { utf8Text } from '../core/http/utf8-text.ts'
import { CONFIG_OPTION, defineCommand } from './command.ts'
import { usage } from './context.ts'
import { addToConfig, findToolset, freeRoute, isCode, loadOrCreateConfig } from './edit-config.ts'
import { readClientFile } from './upstream/read-client-file.ts'

function readFile(file: string, given: string): string {
  try {
    return utf8Text(readFileSync(file, 'utf8'))
  } catch (cause) {
    throw usage(`cannot read ${given}: ${errorText(cause)}`, cause)
  }
}

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
    const text = readFile(source, given)
    const loaded = await loadOrCreateConfig({ config }, context)
    const { servers, notes } = readClientFile(source, text, isCode(loaded.file))
    const isNew = ({ name }: { readonly name: string }) => findToolset(loaded.config, name) === undefined
    const taken = servers
      .filter(server => !isNew(server))
      .map(({ name }) => `${name}: left out, because it exists at ${findToolset(loaded.config, name)}`)
    for (const note of [...notes, ...taken]) say(printable(note))
    const added = servers.filter(isNew)
    if (added.length === 0) {
      print('Nothing to add.')
      return
    }
    const toolsets = added.map(({ name, value }) => {
      return { plugin: 'upstream', key: 'servers', name, value, route: freeRoute(loaded.config, name, 'upstream') }
    })
    await addToConfig(loaded, toolsets, context)
    const variables = [...new Set(added.flatMap(one => one.variables))]
    if (variables.length > 0)
      print(printable(`Set in the environment of mcp-host, or in an --env-file: ${variables.join(', ')}`))
  },
})
