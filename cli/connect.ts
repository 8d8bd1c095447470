// `mcp-host connect`: prints a client's configuration for a server, or writes it to the client's file.
import { printable } from '../client/text.ts'
import { errorText, StartError } from '../core/plugin.ts'
import { homeDirectory } from './client/stored-logins.ts'
import { isInteractive, prompt } from './client/terminal.ts'
import { CONFIG_OPTION, defineCommand } from './command.ts'
import { CLIENTS, type ClientName, type ClientRow, type Machine, type Reached } from './connect/clients.ts'
import { checkName, endpointAt, endpointHere, throughProxy, throughStdio } from './connect/endpoint.ts'
import { assertInside, readConfig, resolveFile, setEntry, writeConfig } from './connect/write-config.ts'
import { type CommandContext, unknownName, usage } from './context.ts'
import { shellWord } from './text.ts'

function findClient(given: string): ClientRow {
  if (Object.hasOwn(CLIENTS, given)) return CLIENTS[given as ClientName]
  throw unknownName('client', given, Object.keys(CLIENTS))
}

function describe(client: ClientRow, name: string, reached: Reached, machine: Machine): string {
  const command = client.command?.(name, reached)
  const { config } = client
  const parts = [
    command?.map(shellWord).join(' '),
    config?.file && `${command ? 'Or in' : 'In'} ${config.file(machine)} (--write does it):`,
    config && JSON.stringify({ [config.key]: { [name]: config.entry(reached) } }, undefined, 2),
    client.next,
  ]
  return parts.filter(part => part !== undefined).join('\n\n')
}

function planEdit(
  file: string,
  before: string,
  { key }: NonNullable<ClientRow['config']>,
  name: string,
  entry: object,
) {
  try {
    return setEntry(before, [key, name], entry)
  } catch (cause) {
    throw new StartError('MH3310', `${file} is unchanged: ${printable(errorText(cause))}; add the entry manually`, {
      cause,
    })
  }
}

function secretParameters(url: string): string[] {
  if (!URL.canParse(url)) return []
  const names = [...new Set(new URL(url).searchParams.keys())]
  return names.filter(name => /key|token|secret|passw|auth|credential|signature|^sig$/i.test(name))
}

async function isWanted(yes: boolean, context: CommandContext): Promise<boolean> {
  if (yes) return true
  if (!isInteractive(context)) throw usage('no terminal for the confirmation; use --yes')
  return /^y(?:es)?$/i.test((await prompt(context, 'Write this? [y/N] '))?.trim() ?? '')
}

async function shownPlace(file: string, isNew: boolean): Promise<string> {
  const real = await resolveFile(file)
  const place = real === file ? printable(file) : `${printable(file)}, which is a link to ${printable(real)}`
  return isNew ? `${place} (new)` : place
}

function warnOfSecrets(reached: Reached, { say }: CommandContext): void {
  const texts = 'url' in reached ? [reached.url] : reached.args
  const names = texts.flatMap(secretParameters)
  if (names.length === 0) return
  say(`the URL contains ${names.join(', ')}, probably a secret: the file and this terminal show it`)
}

async function write(
  client: ClientRow,
  name: string,
  reached: Reached,
  machine: Machine,
  yes: boolean,
  context: CommandContext,
): Promise<number> {
  const { print, say } = context
  const { config } = client
  if (!config?.file) throw usage(`${client.title} has no settings file: omit --write, and run the printed command`)
  const file = config.file(machine)
  if (config.inProject) await assertInside(machine.cwd, file)
  const before = await readConfig(file)
  const entry = JSON.parse(JSON.stringify(config.entry(reached))) as object
  const edit = planEdit(file, before ?? '', config, name, entry)
  if (!edit) {
    print(`${file} already contains this entry.`)
    return 0
  }
  const added = JSON.stringify({ [name]: entry }, undefined, 2)
    .split('\n')
    .slice(1, -1)
  // The old entry can contain secrets.
  const lines = [...(edit.replaces ? [`- the existing entry "${name}"`] : []), ...added.map(line => `+ ${line}`)]
  print(`${await shownPlace(file, before === undefined)}\n${lines.map(line => printable(line)).join('\n')}\n`)
  if (!(await isWanted(yes, context))) {
    say('nothing was written')
    return 1
  }
  const old = await writeConfig(file, before, edit.text)
  print(`written${old === undefined ? '' : `; the previous version is ${old}`}\n${client.next}`)
  return 0
}

async function checkLocal(
  { file, route }: { readonly file: string; readonly route: string },
  context: CommandContext,
): Promise<void> {
  const [{ checkStdio }, { openLog }] = await Promise.all([import('./stdio.ts'), import('./log.ts')])
  await checkStdio({ config: file, route, cwd: context.cwd }, openLog({ 'log-level': 'fatal' }, context))
}

export const connectCommand = defineCommand({
  summary: 'Print or write the settings of an MCP client, for example claude-code, cursor, codex',
  example: 'claude-code https://mcp.example/mcp',
  positionals: ['CLIENT', '[URL]'],
  options: {
    ...CONFIG_OPTION,
    route: { value: '<path>', help: 'Route of the config in this folder [the first without parameters]' },
    name: { value: '<name>', help: 'Server name in the settings of the client [name or host of the server]' },
    stdio: { help: 'Let the client start this config with mcp-host stdio' },
    write: { help: 'Write the settings file of the client, after showing the change' },
    yes: { help: 'Do not ask before writing' },
  },
  notes: `CLIENT is one of ${Object.keys(CLIENTS).join(', ')}. Without a URL, the client connects to the config in this folder.`,
  async run(values, [given = '', url], context) {
    const client: ClientRow = findClient(given)
    const { route, config, stdio = false } = values
    if (url !== undefined && (route !== undefined || config !== undefined)) {
      throw usage('--route and --config select a local config: omit them, or the URL')
    }
    const named = values.name === undefined ? undefined : checkName(values.name)
    const endpoint = url === undefined ? await endpointHere(context, config, route) : endpointAt(url)
    if (stdio && endpoint.local) await checkLocal(endpoint.local, context)
    const { env, cwd, script } = context
    const { platform, execPath } = process
    const starter = { platform, execPath, script }
    const reached = stdio
      ? throughStdio(endpoint, starter)
      : client.remote
        ? { url: endpoint.url }
        : throughProxy(endpoint, starter)
    const machine: Machine = { platform, env, home: homeDirectory(env), cwd }
    const name = named ?? endpoint.name
    warnOfSecrets(reached, context)
    if (values.write) return write(client, name, reached, machine, values.yes ?? false, context)
    context.print(describe(client, name, reached, machine))
    return 0
  },
})
