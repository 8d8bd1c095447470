// `npm run docs:codes`: updates codes and messages of docs/codes.md and docs/codes-plugins.md, and the first columns of the table in
// docs/errors.md. Explanations are written in the pages. A test compares them.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from '@babel/parser'
import { type Node, traverseFast } from '@babel/types'
import { globSync } from 'tinyglobby'
import '../core/create-host.ts'
import { ERROR_KINDS } from '../core/http/errors.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const ERRORS = `${ROOT}docs/errors.md`

export const AREAS = {
  MH10: 'Config files, keys, secrets, files of plugins',
  MH11: 'Toolsets and definitions',
  MH12: 'Routes and access',
  MH13: 'HTTP and TLS',
  MH14: 'Sessions, streams and their stores',
  MH15: 'Plugins: setup, startup, reload',
  MH16: 'Calls',
  MH19: 'The log; tests of authors',
  MH20: 'Plugins for tokens: auth-jwt, auth-introspection, DPoP, resource-metadata',
  MH21: 'auth-bridge, dev-auth-server',
  MH22: 'access-log, audit',
  MH23: 'Redis plugins',
  MH24: 'store-sqlite',
  MH25: 'tasks',
  MH26: 'metrics, event-loop, tracing',
  MH27: 'rate-limit, tool-policy, cors',
  MH28: 'Transports',
  MH29: 'apps, skills, tool-search, isolate, upstream',
  MH30: 'Command line and files of commands',
  MH31: 'Commands that serve: start, dev, stdio, workers',
  MH32: 'Commands that call a server',
  MH33: 'Other commands',
  MH34: 'openapi, upstream',
  MH35: 'store-postgres',
  MH36: 'console',
}

export interface Use {
  readonly code: string
  readonly file: string
  /** `…` stands for an inserted value. */
  readonly messages: readonly string[]
}

const isCode = (node: Node | null | undefined): node is Node & { value: string } =>
  node?.type === 'StringLiteral' && /^MH\d{4}$/.test(node.value)

function findCodes(node: Node | null | undefined): string[] {
  if (isCode(node)) return [node.value]
  if (node?.type === 'ConditionalExpression') return [...findCodes(node.consequent), ...findCodes(node.alternate)]
  return []
}

const findMember = (node: Node | null | undefined, ...names: string[]): Node | undefined =>
  node?.type === 'ObjectExpression'
    ? node.properties.flatMap(one =>
        one.type === 'ObjectProperty' && one.key.type === 'Identifier' && names.includes(one.key.name) ? one.value : [],
      )[0]
    : undefined

/** The names of a file: constants and functions, each with the block in which it is known. */
interface Names {
  readonly values: ReadonlyArray<{ readonly name: string; readonly value: Node; readonly scope: Node }>
  readonly functions: readonly Fn[]
  readonly calls: readonly Called[]
}

type Fn = Extract<Node, { params: unknown; body: unknown }> & { readonly knownAs?: string | undefined }
type Called = Extract<Node, { type: 'CallExpression' | 'OptionalCallExpression' | 'NewExpression' }>

const contains = (outer: Node, inner: Node) =>
  (outer.start ?? 0) <= (inner.start ?? 0) && (outer.end ?? 0) >= (inner.end ?? 0)

const isFunction = (node: Node): node is Fn =>
  ['ArrowFunctionExpression', 'FunctionDeclaration', 'FunctionExpression', 'ObjectMethod', 'ClassMethod'].includes(
    node.type,
  )

const readParams = ({ params }: Fn): string[] =>
  (params as readonly Node[]).map(one => (one.type === 'Identifier' ? one.name : ''))

function findNames(tree: Node): Names {
  const values: Array<{ name: string; value: Node; scope: Node }> = []
  const functions: Fn[] = []
  const calls: Called[] = []
  const blocks: Node[] = []
  traverseFast(tree, node => {
    if (node.type === 'Program' || node.type === 'BlockStatement' || isFunction(node)) blocks.push(node)
    if (node.type === 'FunctionDeclaration') functions.push(Object.assign(node, { knownAs: node.id?.name }))
    if (node.type === 'CallExpression' || node.type === 'NewExpression') calls.push(node)
    if (node.type !== 'VariableDeclarator' || node.id.type !== 'Identifier' || !node.init) return
    const { init: value, id } = node
    if (isFunction(value)) functions.push(Object.assign(value, { knownAs: id.name }))
    values.push({ name: id.name, value, scope: blocks.filter(block => contains(block, node)).at(-1) ?? tree })
  })
  return { values, functions, calls }
}

const MAX_TEXTS = 4
const UNKNOWN = ['…']

/** The texts that an expression can have. A parameter stands for what the calls of its function give. */
function findTexts(node: Node | null | undefined, names: Names, depth = 0): string[] {
  const inner = (one: Node | null | undefined) => (depth > 5 ? UNKNOWN : findTexts(one, names, depth + 1))
  const join = (left: readonly string[], right: readonly string[]) =>
    left.flatMap(one => right.map(other => one + other)).slice(0, MAX_TEXTS)
  switch (node?.type) {
    case 'StringLiteral':
      return [node.value]
    case 'TemplateLiteral':
      return node.quasis.reduce<string[]>(
        (texts, { value }, index) => {
          const whole = join(texts, [value.cooked ?? ''])
          const next = node.expressions[index]
          return next ? join(whole, next.type === 'Identifier' ? inner(next) : UNKNOWN) : whole
        },
        [''],
      )
    case 'BinaryExpression':
      return join(inner(node.left), inner(node.right))
    case 'ConditionalExpression':
      return [...inner(node.consequent), ...inner(node.alternate)]
    case 'Identifier': {
      const { name } = node
      const value = names.values.filter(one => one.name === name && contains(one.scope, node)).at(-1)?.value
      const fn = names.functions.filter(one => contains(one, node) && readParams(one).includes(name)).at(-1)
      if (fn && !(value && contains(fn, value))) {
        const at = readParams(fn).indexOf(name)
        const given = names.calls.flatMap(({ callee, arguments: all }) =>
          callee.type === 'Identifier' && callee.name === fn.knownAs ? inner(all[at]) : [],
        )
        return given.length === 0 ? UNKNOWN : [...new Set(given)].slice(0, MAX_TEXTS)
      }
      return value && /Literal|Binary|Conditional/.test(value.type) ? inner(value) : UNKNOWN
    }
    default:
      return UNKNOWN
  }
}

/** The index of the message next to a code in the arguments of a call. */
function messageAt({ callee }: Called, index: number, { functions }: Names): number {
  const fn = callee.type === 'Identifier' && functions.find(one => one.knownAs === callee.name)
  const named = fn ? readParams(fn).findIndex(name => /^(?:text|why|what)$/.test(name)) : -1
  return named === -1 ? index + 1 : named
}

/** Each use of a code in a source text, and the log calls without a code. */
export function readCodes(file: string, source: string): { uses: Use[]; bare: string[] } {
  const tree = parse(source, { sourceType: 'module', plugins: ['typescript'], attachComment: false })
  const names = findNames(tree.program)
  const uses: Use[] = []
  const bare: string[] = []
  const note = (codes: readonly string[], message: Node | null | undefined) => {
    for (const code of codes) uses.push({ code, file, messages: findTexts(message, names) })
  }
  const textOf = (node: Node | null | undefined) => source.slice(node?.start ?? 0, node?.end ?? 0)
  traverseFast(tree, node => {
    if (node.type === 'CallExpression' || node.type === 'OptionalCallExpression' || node.type === 'NewExpression') {
      const { arguments: given, callee } = node
      given.forEach((one, index) => {
        note(findCodes(one), given[messageAt(node, index, names)])
        if (!findMember(one, 'text', 'msg')) note(findCodes(findMember(one, 'code')), given[index + 1])
      })
      if (
        /(?:\blog|#log|unlimited)(?:\??\.(?:info|warn|error|fatal)|\[level\])$/.test(textOf(callee)) &&
        !/\bcode\b/.test(textOf(given[0]))
      )
        bare.push(`${file}:${node.loc?.start.line}`)
    } else if (node.type === 'ObjectExpression') {
      const message = findMember(node, 'text', 'msg')
      if (message) note(findCodes(findMember(node, 'code')), message)
    } else if (node.type === 'ObjectProperty' && isCode(node.value)) {
      const name = node.key.type === 'Identifier' ? node.key.name : node.key.type === 'StringLiteral' && node.key.value
      if (name && name !== 'code') uses.push({ code: node.value.value, file, messages: [name] })
    }
  })
  return { uses, bare }
}

export function readAll(): { uses: Use[]; bare: string[] } {
  const files = globSync(['core/**/*.ts', 'plugins/**/*.ts', 'cli/**/*.ts', '!**/*.d.ts'], { cwd: ROOT }).sort()
  const read = files
    .map(file => ({ file, source: readFileSync(`${ROOT}${file}`, 'utf8') }))
    .filter(({ source }) => /'MH\d{4}'|(?:log|unlimited)\??\.(?:info|warn|error|fatal)|\[level\]/.test(source))
    .map(({ file, source }) => readCodes(file, source))
  return { uses: read.flatMap(({ uses }) => uses), bare: read.flatMap(({ bare }) => bare) }
}

const MAX_SHOWN = 85

/** `isClause`: a long message ends after a clause, because the explanation contains the rest. */
const inCode = (text: string, isClause: boolean) => {
  const whole = text
    .replaceAll('`', '')
    .replace(/\s*\n\s*/g, ' ')
    .trim()
  if (whole.length <= MAX_SHOWN) return `\`${whole}\``
  const [clause = whole.slice(0, whole.lastIndexOf(' ', MAX_SHOWN))] =
    (isClause && /^.{20,85}(?=[;:.] )/.exec(whole)) || []
  return `\`${clause.replace(/ ?…$/, '')} …\``
}

/** The explanations on a page, by code: cause and action, indented below the message. They are written in the page itself. */
export function parseExplanations(page: string): Map<string, string> {
  return new Map(
    [...page.matchAll(/^- `(MH\d{4})`.*\n((?: {2}.*\n)+)/gm)].map(([, code = '', text = '']) => [code, text]),
  )
}

function readSections(
  uses: readonly Use[],
  areas: readonly (keyof typeof AREAS)[],
  explanations: ReadonlyMap<string, string>,
): string {
  const codes = [...new Set(uses.map(({ code }) => code))].sort()
  const sections = areas.flatMap(area => {
    const unknown: string[] = []
    const lines = codes
      .filter(code => code.startsWith(area))
      .flatMap(code => {
        const messages = uses.filter(use => use.code === code).flatMap(use => use.messages)
        const [shown] = messages
          .filter(text => /\w{4}/.test(text.replaceAll('plugins.…', '')))
          .map(text => text.replaceAll(/……+/g, '…'))
          .sort((one, other) => one.length - other.length)
        const explanation = explanations.get(code) ?? ''
        if (shown !== undefined)
          return `- \`${code}\`: ${inCode(shown, explanation !== '')}${explanation && '\\'}\n${explanation}`
        if (explanation) return `- \`${code}\`\\\n${explanation}`
        unknown.push(`\`${code}\``)
        return []
      })
    if (unknown.length > 0) lines.push(`- Other codes, with various messages: ${unknown.join(', ')}\n`)
    return lines.length === 0 ? [] : `## ${area}: ${AREAS[area]}\n\n${lines.join('')}`
  })
  return sections.join('\n')
}

const CODES_PAGES = ['docs/codes.md', 'docs/codes-plugins.md']

export const readExplanations = () =>
  parseExplanations(CODES_PAGES.map(path => readFileSync(`${ROOT}${path}`, 'utf8')).join('\n'))

/** The text of each page with codes, by its path. */
export function codesPages(uses: readonly Use[], explanations: ReadonlyMap<string, string>): Record<string, string> {
  const areas = Object.keys(AREAS) as (keyof typeof AREAS)[]
  const ofPlugins = areas.filter(area => /^MH(?:2\d|34|35|36)$/.test(area))
  const ofHost = areas.filter(area => !ofPlugins.includes(area))
  return {
    'docs/codes.md': `# Codes

Each error at startup and each log line has a stable code. \`npx mcp-host help MH1301\` prints an entry.
[codes-plugins.md](codes-plugins.md) lists the codes of plugins. \`…\` stands for an inserted value. Refused requests
have the kinds of [errors.md](errors.md). \`npm run docs:codes\` updates codes and messages. Edit explanations here.

${readSections(uses, ofHost, explanations)}`,
    'docs/codes-plugins.md': `# Codes of plugins

Codes of the built-in plugins, in addition to the [codes of the host](codes.md).

${readSections(uses, ofPlugins, explanations)}`,
  }
}

/** The page with a row for each error kind. The last two columns are written in the page. */
export function errorsPage(page: string): string {
  const row = /^\| `(\w+)` \| \d{3} \| -\d{5} \| (.*)$/gm
  const written = new Map([...page.matchAll(row)].map(([, kind = '', rest = '']) => [kind, rest]))
  const kinds = new Map(Object.entries(ERROR_KINDS))
  const order = [...written.keys(), ...kinds.keys()].filter((kind, index, all) => all.indexOf(kind) === index)
  const rows = order.flatMap(kind => {
    const { status, code } = kinds.get(kind) ?? {}
    return status === undefined ? [] : `| \`${kind}\` | ${status} | ${code} | ${written.get(kind) ?? ' | |'}`
  })
  return page.replace(/(\| Kind \| Status \|.*\n\|[-|]+\|\n)(?:\|.*\n)*/, (_, head) => `${head}${rows.join('\n')}\n`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [path, text] of Object.entries(codesPages(readAll().uses, readExplanations()))) {
    writeFileSync(`${ROOT}${path}`, text)
  }
  writeFileSync(ERRORS, errorsPage(readFileSync(ERRORS, 'utf8')))
}
