// Adds toolsets of plugins, with their routes, to a config: JSON, YAML, or code with object literals.
import { extname, relative } from 'node:path'
import { applyEdits, modify } from 'jsonc-parser'
import { parseDocument } from 'yaml'
import { printable } from '../client/text.ts'
import { objectInCode } from '../core/config/locate-in-code.ts'
import { isObject } from '../core/plugin.ts'
import { readConfig as readText, writeConfig } from './connect/write-config.ts'
import { type CommandContext, usage } from './context.ts'

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
}

const entriesOf = ({ plugin, key, name, value, route }: AddedToolset) =>
  [
    [['plugins', plugin, key, name], value],
    [['routes', route], { toolsets: name }],
  ] as const

function addToJson(text: string, added: AddedToolset): string {
  const unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
  const formattingOptions = { insertSpaces: !unit.startsWith('\t'), tabSize: unit.length, eol: '\n' }
  return entriesOf(added).reduce(
    (edited, [path, value]) => applyEdits(edited, modify(edited, [...path], value, { formattingOptions })),
    text,
  )
}

function addToYaml(text: string, added: AddedToolset): string {
  const document = parseDocument(text)
  for (const [path, value] of entriesOf(added)) document.setIn(path, document.createNode(value))
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

/** Undefined if the config does not have the objects as literals. */
function addToCode(text: string, { plugin, key, name, value, route }: AddedToolset): string | undefined {
  const entry = `${keyOf(name)}: ${literalOf(value)}`
  const entries = objectInCode(text, ['plugins', plugin, key])
  const plugins = objectInCode(text, ['plugins'])
  const routes = objectInCode(text, ['routes'])
  if (!routes || !(entries ?? plugins)) return undefined
  const places = [
    { ...(entries ?? plugins), text: entries ? entry : `${keyOf(plugin)}: { ${key}: { ${entry} } }` },
    { ...routes, text: `${quote(route)}: { toolsets: ${quote(name)} }` },
  ]
  return places
    .sort((one, other) => (other.start ?? 0) - (one.start ?? 0))
    .reduce((edited, { start = 0, isEmpty, text: added }) => {
      const end = isEmpty ? ' ' : ','
      return `${edited.slice(0, start)}\n    ${added}${end}${edited.slice(start)}`
    }, text)
}

const EDITORS: Readonly<Record<string, (text: string, added: AddedToolset) => string | undefined>> = {
  '.json': addToJson,
  '.yaml': addToYaml,
  '.yml': addToYaml,
}

/** Whether the config can hold expressions. */
export const isCode = (file: string): boolean => !Object.hasOwn(EDITORS, extname(file))

const at = (value: unknown, ...keys: string[]): unknown =>
  keys.reduce((found, key) => (isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined), value)

/** The place of a toolset of this name in the config. */
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

/** Writes the toolsets, or prints what to add if the config is code without literals. */
export async function addToConfig(
  file: string,
  added: readonly AddedToolset[],
  { cwd, print }: CommandContext,
): Promise<void> {
  const text = (await readText(file)) ?? ''
  const edit = EDITORS[extname(file)] ?? addToCode
  const edited = added.reduce<string | undefined>(
    (before, one) => (before === undefined ? undefined : edit(before, one)),
    text,
  )
  const shown = printable(relative(cwd, file))
  if (edited === undefined) {
    print(`${shown} cannot be edited automatically. Add:`)
    for (const [keys, value] of added.flatMap(entriesOf)) print(printable(`  ${keys.join('.')}: ${literalOf(value)}`))
    return
  }
  const old = await writeConfig(file, text, edited)
  for (const { name, route } of added) print(printable(`Added toolset "${name}" to ${shown}, served at ${route}.`))
  print(`The previous version is ${printable(relative(cwd, old ?? file))}.`)
}
