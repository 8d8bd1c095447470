// `mcp-host add openapi`: adds a document and a route for its toolset to the config.
import { dirname, extname, posix, relative, resolve, sep } from 'node:path'
import { applyEdits, modify } from 'jsonc-parser'
import { parseDocument } from 'yaml'
import { printable } from '../../client/text.ts'
import { objectInCode } from '../../core/config/locate-in-code.ts'
import { isObject } from '../../core/plugin.ts'
import { readConfig } from '../config.ts'
import { readConfig as readText, writeConfig } from '../connect/write-config.ts'
import { type CommandContext, usage } from '../context.ts'
import { readSurvey } from './read-survey.ts'

/** `orders` for `apis/orders.openapi.yaml`. */
function nameOf(document: string): string {
  const [last = ''] = document.split(/[\\/]/).slice(-1)
  const name = last
    .replace(/(?:[.-](?:openapi|swagger))?\.(?:json|ya?ml)(?:[?#].*)?$/i, '')
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
  return name.replace(/^-+|-+$/g, '') || 'api'
}

interface Added {
  readonly name: string
  readonly document: string
  readonly route: string
}

/** The keys that the config gets. */
const entriesOf = ({ name, document, route }: Added) =>
  [
    [['plugins', 'openapi', 'documents', name], { document }],
    [['routes', route], { toolsets: name }],
  ] as const

function addToJson(text: string, added: Added): string {
  const unit = /\n([ \t]+)\S/.exec(text)?.[1] ?? '  '
  const formattingOptions = { insertSpaces: !unit.startsWith('\t'), tabSize: unit.length, eol: '\n' }
  return entriesOf(added).reduce(
    (edited, [path, value]) => applyEdits(edited, modify(edited, [...path], value, { formattingOptions })),
    text,
  )
}

function addToYaml(text: string, added: Added): string {
  const document = parseDocument(text)
  for (const [path, value] of entriesOf(added)) document.setIn(path, document.createNode(value))
  return document.toString({ lineWidth: 0 })
}

/** Undefined if the config does not have the objects as literals. */
function addToCode(text: string, { name, document, route }: Added): string | undefined {
  const quote = (value: string) => `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : quote(name)
  const entry = `${key}: { document: ${quote(document)} }`
  const documents = objectInCode(text, ['plugins', 'openapi', 'documents'])
  const plugins = objectInCode(text, ['plugins'])
  const routes = objectInCode(text, ['routes'])
  if (!routes || !(documents ?? plugins)) return undefined
  const places = [
    { ...(documents ?? plugins), text: documents ? entry : `openapi: { documents: { ${entry} } }` },
    { ...routes, text: `${quote(route)}: { toolsets: ${quote(name)} }` },
  ]
  return places
    .sort((one, other) => (other.start ?? 0) - (one.start ?? 0))
    .reduce((edited, { start = 0, isEmpty, text: added }) => {
      const end = isEmpty ? ' ' : ','
      return `${edited.slice(0, start)}\n    ${added}${end}${edited.slice(start)}`
    }, text)
}

const EDITORS: Readonly<Record<string, (text: string, added: Added) => string | undefined>> = {
  '.json': addToJson,
  '.yaml': addToYaml,
  '.yml': addToYaml,
}

function assertFree(config: unknown, name: string): void {
  const at = (value: unknown, ...keys: string[]): unknown =>
    keys.reduce((found, key) => (isObject(found) && Object.hasOwn(found, key) ? found[key] : undefined), value)
  const places = [['toolsets'], ['plugins', 'openapi', 'documents']]
  const taken = places.find(keys => at(config, ...keys, name) !== undefined)
  if (taken)
    throw usage(
      `the config has a toolset "${name}" already, at ${[...taken, name].join('.')}: rename the file, or edit the config`,
    )
}

function freeRoute(config: unknown, name: string): string {
  const routes = isObject(config) && isObject(config['routes']) ? config['routes'] : {}
  return [`/${name}`, `/${name}-api`].find(route => !Object.hasOwn(routes, route)) ?? `/${name}-openapi`
}

export async function addDocument(
  { config }: { config?: string | undefined },
  given: string,
  context: CommandContext,
): Promise<void> {
  const { cwd, print } = context
  const survey = await readSurvey(given, { methods: 'get' }, cwd)
  const loaded = await readConfig({ config }, context)
  const file = resolve(cwd, loaded.file)
  const isUrl = /^https?:/.test(given)
  const path = relative(dirname(file), resolve(cwd, given)).replaceAll(sep, posix.sep)
  const document = isUrl ? given : path.startsWith('.') ? path : `./${path}`
  const name = nameOf(given)
  assertFree(loaded.config, name)
  const added = { name, document, route: freeRoute(loaded.config, name) }
  const text = (await readText(file)) ?? ''
  const edited = (EDITORS[extname(file)] ?? addToCode)(text, added)
  const shown = printable(relative(cwd, file))
  if (edited === undefined) {
    print(`${shown} cannot be edited automatically. Add:`)
    for (const [keys, value] of entriesOf(added)) print(`  ${keys.join('.')}: ${JSON.stringify(value)}`)
  } else {
    const old = await writeConfig(file, text, edited)
    print(
      `Added toolset "${name}" to ${shown}, served at ${added.route}. The previous version is ${printable(relative(cwd, old ?? file))}.`,
    )
  }
  const { tools, operations, securitySchemes } = survey
  print(`${tools.length} of ${operations} operations become tools: only GET unless \`methods\` names others.`)
  const schemes = Object.keys(securitySchemes)
  if (schemes.length > 0) {
    print(
      `Operations with credentials are left out until \`credentials\` has a secret for: ${schemes.map(one => printable(one)).join(', ')}`,
    )
  }
}
