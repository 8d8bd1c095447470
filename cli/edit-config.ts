// Adds toolsets of plugins, with their routes, to a config: JSON, YAML, or code with object literals.
import { writeFile } from 'node:fs/promises'
import { basename, extname, join, relative, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseDocument, stringify } from 'yaml'
import { printable } from '../client/text.ts'
import type { LoadedConfig } from '../core/config/load-config.ts'
import { objectInCode } from '../core/config/locate-in-code.ts'
import { isObject, StartError } from '../core/plugin.ts'
import { readConfig } from './config.ts'
import { editJson, readConfig as readText, writeConfig } from './connect/write-config.ts'
import { type CommandContext, selfCommand, usage } from './context.ts'
import { shellWord } from './text.ts'

/** An expression of a config in code. Other formats cannot have one. */
export class Expression {
  readonly code: string
  constructor(code: string) {
    this.code = code
  }
}

/** A toolset that a plugin makes, and the key of the plugin's options that holds it. */
export interface AddedToolset {
  readonly plugin: string
  readonly key: string
  readonly name: string
  readonly value: object
  readonly route: string
  /** Keys of the existing routes that protect the new one. */
  readonly access?: object
}

type Entry = readonly [path: readonly string[], value: unknown]

const entriesOf = ({ plugin, key, name, value, route, access }: AddedToolset): readonly Entry[] => [
  [['plugins', plugin, key, name], value],
  [['routes', route], { toolsets: name, ...access }],
]

function addToYaml(text: string, entries: readonly Entry[]): string {
  const document = parseDocument(text)
  for (const [path, value] of entries) document.setIn(path, document.createNode(value))
  return document.toString({ lineWidth: 0 })
}

export const quote = (value: string): string =>
  `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const keyOf = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name))

function literalOf(value: unknown): string {
  if (value instanceof Expression) return value.code
  if (typeof value === 'string') return quote(value)
  if (Array.isArray(value)) return `[${value.map(literalOf).join(', ')}]`
  if (!isObject(value)) return JSON.stringify(value)
  return `{ ${Object.entries(value)
    .map(([name, member]) => `${keyOf(name)}: ${literalOf(member)}`)
    .join(', ')} }`
}

/** Returns undefined if the config does not contain the objects as literals. */
function addToCode(text: string, { plugin, key, name, value, route, access }: AddedToolset): string | undefined {
  const entry = `${keyOf(name)}: ${literalOf(value)}`
  const entries = objectInCode(text, ['plugins', plugin, key])
  const plugins = objectInCode(text, ['plugins'])
  const routes = objectInCode(text, ['routes'])
  if (!routes || !(entries ?? plugins)) return undefined
  const places = [
    { ...(entries ?? plugins), text: entries ? entry : `${keyOf(plugin)}: { ${key}: { ${entry} } }` },
    { ...routes, text: `${quote(route)}: ${literalOf({ toolsets: name, ...access })}` },
  ]
  return places
    .sort((one, other) => (other.start ?? 0) - (one.start ?? 0))
    .reduce((edited, { start = 0, isEmpty, text: added }) => {
      const end = isEmpty ? ' ' : ','
      return `${edited.slice(0, start)}\n    ${added}${end}${edited.slice(start)}`
    }, text)
}

const EDITORS: Readonly<Record<string, (text: string, entries: readonly Entry[]) => string>> = {
  '.json': (text, entries) => entries.reduce((edited, [path, value]) => editJson(edited, path, value), text),
  '.yaml': addToYaml,
  '.yml': addToYaml,
}

/** True if the config is code and can contain expressions. */
export const isCode = (file: string): boolean => !Object.hasOwn(EDITORS, extname(file))

const at = (value: unknown, ...keys: string[]): unknown =>
  keys.reduce((found, key) => (isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined), value)

export const findToolset = (config: unknown, name: string): string | undefined =>
  [['toolsets'], ['plugins', 'openapi', 'documents'], ['plugins', 'upstream', 'servers']]
    .find(keys => at(config, ...keys, name) !== undefined)
    ?.concat(name)
    .join('.')

export function assertFree(config: unknown, name: string, fix: string): void {
  const taken = findToolset(config, name)
  if (taken !== undefined)
    throw usage(`the config already has a toolset "${printable(name)}" at ${printable(taken)}: ${fix}`)
}

export function freeRoute(config: unknown, name: string, suffix: string): string {
  const routes = at(config, 'routes')
  const isTaken = (route: string) => isObject(routes) && Object.hasOwn(routes, route)
  return [`/${name}`, `/${name}-api`].find(route => !isTaken(route)) ?? `/${name}-${suffix}`
}

function commonAccess(config: unknown): { readonly authorize?: unknown } {
  const routes = at(config, 'routes')
  const [first, ...others] = isObject(routes) ? Object.values(routes).map(route => at(route, 'authorize')) : []
  return first === undefined || others.some(other => !isDeepStrictEqual(other, first)) ? {} : { authorize: first }
}

const STANDARD_TRANSPORT: Entry = [['plugins', 'transport-streamable'], {}]

const hasTransport = (plugins: unknown) =>
  isObject(plugins) && Object.keys(plugins).some(name => name.startsWith('transport-'))

const editCode = (text: string, added: readonly AddedToolset[]) =>
  added.reduce<string | undefined>((before, one) => (before === undefined ? undefined : addToCode(before, one)), text)

const NEW_CONFIG = 'mcp.config.yaml'

interface EditedConfig extends LoadedConfig {
  /** Created by this command: no previous version is kept. */
  readonly isNew?: boolean
}

/** Loads the config. Without one, writes a new config in the working directory. */
export async function loadOrCreateConfig(
  { config }: { readonly config?: string | undefined },
  context: CommandContext,
): Promise<EditedConfig> {
  try {
    return await readConfig({ config }, context)
  } catch (error) {
    if (!(error instanceof StartError && error.code === 'MH1001') || config !== undefined) throw error
  }
  const name = basename(context.cwd).replace(/[^A-Za-z0-9_.-]/g, '-') || 'mcp-host'
  const text = stringify({ server: { name, version: '1.0.0' }, plugins: { 'transport-streamable': {} } })
  await writeFile(join(context.cwd, NEW_CONFIG), text, { flag: 'wx' })
  context.print(`Created ${NEW_CONFIG}.`)
  return { ...(await readConfig({}, context)), isNew: true }
}

export const printNextStep = (context: CommandContext, config: string | undefined): void =>
  context.print(
    printable(`Next: ${selfCommand(context)} dev${config === undefined ? '' : ` --config ${shellWord(config)}`}`),
  )

/** Adds toolsets to the config, and a transport if it has none. Prints the additions if a config in code has no object literals. */
export async function addToConfig(
  { config, file: name, isNew = false }: EditedConfig,
  toolsets: readonly AddedToolset[],
  { cwd, print }: CommandContext,
): Promise<void> {
  const access = commonAccess(config)
  const added = toolsets.map(toolset => ({ ...toolset, access }))
  const file = resolve(cwd, name)
  const text = (await readText(file)) ?? ''
  const edit = EDITORS[extname(file)]
  const transport = hasTransport(at(config, 'plugins')) ? [] : [STANDARD_TRANSPORT]
  const edited = edit ? edit(text, [...transport, ...added.flatMap(entriesOf)]) : editCode(text, added)
  const shown = printable(relative(cwd, file))
  const warnOpen = () => {
    if (access.authorize !== undefined) return
    for (const { route } of added)
      print(printable(`${route} is open: anyone who can reach the host can call its tools; add \`authorize\`.`))
  }
  if (edited === undefined) {
    print(`${shown} cannot be edited automatically. Add:`)
    for (const [keys, value] of added.flatMap(entriesOf)) print(printable(`  ${keys.join('.')}: ${literalOf(value)}`))
    return warnOpen()
  }
  const old = isNew ? undefined : await writeConfig(file, text, edited)
  if (isNew) await writeFile(file, edited)
  for (const { name, route } of added) print(printable(`Added toolset "${name}" to ${shown}, served at ${route}.`))
  warnOpen()
  if (!edit && transport.length > 0) print("Add a transport to `plugins`: 'transport-streamable': {}")
  if (old !== undefined) print(`The previous version is ${printable(relative(cwd, old))}.`)
}
