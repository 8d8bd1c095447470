// `npm run docs:codes`: writes docs/codes.md, with each code, its messages and files, and the first columns of the table in
// docs/errors.md. A test compares both.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from '@babel/parser'
import { type Node, traverseFast } from '@babel/types'
import { globSync } from 'tinyglobby'
import '../core/index.ts'
import { ERROR_KINDS } from '../core/http/errors.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const CODES = `${ROOT}docs/codes.md`
const ERRORS = `${ROOT}docs/errors.md`

const AREAS = {
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
  MH29: 'apps, skills, tool-search, isolate',
  MH30: 'Command line and files of commands',
  MH31: 'Commands that serve: start, dev, stdio, workers',
  MH32: 'Commands that call a server',
  MH33: 'Other commands',
}

export interface Use {
  readonly code: string
  readonly file: string
  /** `…` stands for an inserted value. */
  readonly messages: readonly string[]
}

const isCode = (node: Node | null | undefined): node is Node & { value: string } =>
  node?.type === 'StringLiteral' && /^MH\d{4}$/.test(node.value)

function codesIn(node: Node | null | undefined): string[] {
  if (isCode(node)) return [node.value]
  if (node?.type === 'ConditionalExpression') return [...codesIn(node.consequent), ...codesIn(node.alternate)]
  return []
}

const memberOf = (node: Node | null | undefined, ...names: string[]): Node | undefined =>
  node?.type === 'ObjectExpression'
    ? node.properties.flatMap(one =>
        one.type === 'ObjectProperty' && one.key.type === 'Identifier' && names.includes(one.key.name) ? one.value : [],
      )[0]
    : undefined

type Constants = ReadonlyMap<string, readonly Node[]>

/** The texts that an expression can have. Names stand for the last constant before them. */
function textsOf(node: Node | null | undefined, constants: Constants, depth = 0): string[] {
  const inner = (one: Node) => (depth > 4 ? ['…'] : textsOf(one, constants, depth + 1))
  const join = (left: readonly string[], right: readonly string[]) =>
    left.flatMap(one => right.map(other => one + other)).slice(0, 4)
  switch (node?.type) {
    case 'StringLiteral':
      return [node.value]
    case 'TemplateLiteral':
      return node.quasis.reduce<string[]>(
        (texts, { value }, index) => {
          const whole = join(texts, [value.cooked ?? ''])
          const next = node.expressions[index]
          return next ? join(whole, next.type === 'Identifier' ? inner(next) : ['…']) : whole
        },
        [''],
      )
    case 'BinaryExpression':
      return join(inner(node.left), inner(node.right))
    case 'ConditionalExpression':
      return [...inner(node.consequent), ...inner(node.alternate)]
    case 'Identifier': {
      const before = constants.get(node.name)?.filter(({ end }) => (end ?? 0) < (node.start ?? 0)) ?? []
      const found = before.at(-1) ?? constants.get(node.name)?.at(0)
      return found && /Literal|Binary|Conditional/.test(found.type) ? inner(found) : ['…']
    }
    default:
      return ['…']
  }
}

/** Each use of a code in a source text, and the log calls without a code. */
export function readCodes(file: string, source: string): { uses: Use[]; bare: string[] } {
  const tree = parse(source, { sourceType: 'module', plugins: ['typescript'] })
  const uses: Use[] = []
  const bare: string[] = []
  const constants = new Map<string, Node[]>()
  traverseFast(tree, node => {
    if (node.type !== 'VariableDeclarator' || node.id.type !== 'Identifier' || !node.init) return
    constants.set(node.id.name, [...(constants.get(node.id.name) ?? []), node.init])
  })
  const note = (codes: readonly string[], message: Node | null | undefined) => {
    for (const code of codes) uses.push({ code, file, messages: textsOf(message, constants) })
  }
  traverseFast(tree, node => {
    if (node.type === 'CallExpression' || node.type === 'OptionalCallExpression' || node.type === 'NewExpression') {
      const { arguments: given, callee } = node
      given.forEach((one, index) => {
        note(codesIn(one), given[index + 1])
        if (!memberOf(one, 'text')) note(codesIn(memberOf(one, 'code')), given[index + 1])
      })
      if (!callee.type.endsWith('MemberExpression') || !('property' in callee)) return
      const called = source.slice(callee.start ?? 0, callee.end ?? 0)
      if (/(?:\blog|#log|unlimited)\??\.(?:info|warn|error|fatal)$/.test(called) && !memberOf(given[0], 'code')) {
        if (!/\bcode\b/.test(source.slice(given[0]?.start ?? 0, given[0]?.end ?? 0)))
          bare.push(`${file}:${node.loc?.start.line}`)
      }
    } else if (node.type === 'ObjectExpression') {
      const message = memberOf(node, 'text', 'msg')
      if (message) note(codesIn(memberOf(node, 'code')), message)
    } else if (node.type === 'ObjectProperty' && isCode(node.value)) {
      const name = node.key.type === 'Identifier' ? node.key.name : node.key.type === 'StringLiteral' && node.key.value
      if (name && name !== 'code') uses.push({ code: node.value.value, file, messages: [name] })
    }
  })
  return { uses, bare }
}

export function readAll(): { uses: Use[]; bare: string[] } {
  const files = globSync(['core/**/*.ts', 'plugins/**/*.ts', 'cli/**/*.ts', '!**/*.d.ts'], { cwd: ROOT }).sort()
  const read = files.map(file => readCodes(file, readFileSync(`${ROOT}${file}`, 'utf8')))
  return { uses: read.flatMap(({ uses }) => uses), bare: read.flatMap(({ bare }) => bare) }
}

const cell = (text: string) => {
  const line = text
    .replace(/\s*\n\s*/g, ' ')
    .replaceAll('|', '\\|')
    .trim()
  return line.includes('`') ? `\`\` ${line} \`\`` : `\`${line}\``
}

export function codesPage(uses: readonly Use[]): string {
  const codes = [...new Set(uses.map(({ code }) => code))].sort()
  const sections = Object.entries(AREAS).flatMap(([area, title]) => {
    const rows = codes
      .filter(code => code.startsWith(area))
      .map(code => {
        const own = uses.filter(use => use.code === code)
        const messages = [...new Set(own.flatMap(({ messages }) => messages))]
        const shown = messages.filter(text => /\w/.test(text))
        const files = [...new Set(own.map(({ file }) => `\`${file}\``))]
        return `| \`${code}\` | ${(shown.length > 0 ? shown : ['…']).slice(0, 8).map(cell).join('<br>')} | ${files.join('<br>')} |\n`
      })
    return rows.length === 0
      ? []
      : `## ${area}: ${title}\n\n| Code | Message | Source |\n|---|---|---|\n${rows.join('')}`
  })
  return `# Codes\n\nEach error at startup and each log line has a stable code. The same cause has the same code everywhere. \`…\` stands for an
inserted value. Refused requests have the kinds of [errors.md](errors.md). This page is generated: \`npm run docs:codes\`.\n\n${sections.join('\n')}`
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
  writeFileSync(CODES, codesPage(readAll().uses))
  writeFileSync(ERRORS, errorsPage(readFileSync(ERRORS, 'utf8')))
}
