// What other frameworks for MCP call the parts of a tool, a resource or a prompt: recognised, and told the name that is right
// here, with its form. For check-definition.ts and load-toolsets.ts.
import { readFileSync } from 'node:fs'
import { formatPath, type Path } from '../http/errors.ts'
import { kindOf } from '../mcp/define.ts'
import { type Finding, omitMisspelledKeys } from './explain-problems.ts'
import { isPlain } from './plain.ts'
import { positionAt } from './position.ts'
import type { Mistake } from './problems.ts'

type Kind = 'tool' | 'resource' | 'prompt'

/** How each key is written. */
const FORMS: Readonly<Record<string, string>> = {
  handler: 'handler: (args, ctx) => ...',
  input: "input: z.object({ ... }), or a JSON Schema such as { type: 'object', properties: { ... } }",
  output: "output: z.object({ ... }), or a JSON Schema such as { type: 'object', properties: { ... } }",
  arguments: "arguments: { topic: { description: '...', required: true } }",
  access: "access: 'the name of a policy, a scope or a role'",
  uri: "uri: 'notes://all'",
  uriTemplate: "uriTemplate: 'notes://{id}'",
}

const words = (text: string, name: string) => text.split(' ').map(word => [word, name] as const)

const HANDLER = words(
  'execute run callback cb fn func call invoke action resolve resolver load read readCallback method',
  'handler',
)
const ACCESS = words('scopes scope roles role auth authorize canAccess permissions', 'access')
const INPUT = 'parameters inputSchema input_schema paramsSchema argsSchema params args schema arguments inputs'

const MEANT: Readonly<Record<Kind, ReadonlyMap<string, string>>> = {
  tool: new Map([
    ...HANDLER,
    ...ACCESS,
    ...words(INPUT, 'input'),
    ...words('outputSchema output_schema returns response result outputs', 'output'),
  ]),
  resource: new Map([
    ...HANDLER,
    ...ACCESS,
    ...words('url href', 'uri'),
    ...words('template uri_template uriPattern resourceTemplate', 'uriTemplate'),
  ]),
  prompt: new Map([...HANDLER, ...ACCESS, ...words(INPUT, 'arguments')]),
}

/** The findings, with the right names of keys that other frameworks have; what such a key stands for is not missing too. */
export function withForeignNames(findings: readonly Finding[], kind: Kind): Finding[] {
  const meant = new Map<Finding, string>()
  for (const finding of findings) {
    const name = MEANT[kind].get(String(finding.path[0]))
    if (finding.kind === 'unknown option' && finding.path.length === 1 && name !== undefined) meant.set(finding, name)
  }
  const renamed = findings.map(finding => {
    const name = meant.get(finding)
    return name === undefined ? finding : { ...finding, suggestion: name, expected: FORMS[name] ?? name }
  })
  return omitMisspelledKeys(renamed)
}

const RETURNED = 'export what defineTool, defineResource or definePrompt return'
/** How the official SDK and others register on a server. */
const REGISTERS =
  /\.(tool|registerTool|addTool|resource|registerResource|addResource|prompt|registerPrompt|addPrompt)\s*\(/

const looksDefined = (value: unknown): value is { name: string } =>
  isPlain(value) &&
  kindOf(value) === undefined &&
  'name' in value &&
  typeof value.name === 'string' &&
  Object.keys(value).some(key => key === 'handler' || HANDLER.some(([word]) => word === key))

interface Module {
  readonly file: string
  readonly exported: Readonly<Record<string, unknown>>
  /** Where the config names it. */
  readonly at: Path
}

/** What is exported as if it were a definition, and is none: nothing would serve it. */
export function explainBare({ file, exported, at }: Module): Mistake[] {
  const values = Object.values(exported).flatMap(value => (Array.isArray(value) ? (value as unknown[]) : [value]))
  return [...new Set(values)].filter(looksDefined).map(({ name }) => {
    const text = `"${name}" is a plain object, and no definition: wrap it, as in export const it = defineTool({ ... })`
    const path = formatPath(at)
    const written = new RegExp(`['"\`]${name.replace(/\W/g, '\\$&')}['"\`]`)
    return { file, path, ...lineIn(readFileSync(file, 'utf8'), written), text: `${path}: ${text}` }
  })
}

function lineIn(source: string, text: RegExp): { line?: number } {
  const offset = source.search(text)
  return offset === -1 ? {} : { line: positionAt(source, offset).line }
}

/** What a module without a definition has instead. */
export function explainNone({ file, exported, at }: Module): Mistake {
  const path = formatPath(at)
  const source = readFileSync(file, 'utf8')
  const [, call] = REGISTERS.exec(source) ?? []
  if (call !== undefined) {
    const what = call.toLowerCase().replace(/^register|^add/, '')
    const define = `define${what.charAt(0).toUpperCase()}${what.slice(1)}`
    const fix = `it calls .${call}(...) of another framework's server: write export const it = ${define}({ name, ... })`
    return { file, path, ...lineIn(source, REGISTERS), text: `${path}: it exports no definition; ${fix}` }
  }
  const names = Object.keys(exported)
  const found = names.length === 0 ? 'nothing' : names.slice(0, MOST_NAMES).join(', ')
  return { file, path, text: `${path}: it exports no definition; ${RETURNED} (it exports ${found})` }
}

const MOST_NAMES = 5
