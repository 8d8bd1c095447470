// Checks the keys of tools, resources and prompts.

import { readFileSync } from 'node:fs'
import { formatPath, type Path } from '../http/errors.ts'
import { type Definition, kindOf } from '../mcp/definitions/define.ts'
import { DEFINITION_SCHEMAS } from '../mcp/definitions/definition-schema.ts'
import type { DeclaredKeys } from './declared-keys.ts'
import { isPlain } from './define-config.ts'
import type { Finding } from './explain-problems.ts'
import { lineAt } from './locate-in-code.ts'
import type { StartProblem } from './problems.ts'
import { validateValue } from './validate-value.ts'

/** The problems of a definition, with paths relative to it. Undefined keys count as absent. */
export type FindProblems = (definition: Definition) => Finding[]

export function createDefinitionCheck(toolKeys: DeclaredKeys['toolKeys']): FindProblems {
  const schemas = schemasWith(toolKeys)
  const findingsOf = (value: unknown, schema: object): Finding[] => {
    try {
      return validateValue(value, schema, [])
    } catch (error) {
      for (const [name, { value: ofKey, plugin }] of toolKeys) {
        validateValue(undefined, ofKey, ['plugins', plugin], `the schema of the tool key "${name}"`)
      }
      throw error
    }
  }
  return definition => {
    const kind = kindOf(definition)
    if (kind === undefined) return []
    return findingsOf(withoutUndefined(definition, OWN_KEYS), schemas[kind])
  }
}

export function schemasWith(toolKeys: DeclaredKeys['toolKeys']): typeof DEFINITION_SCHEMAS {
  if (toolKeys.size === 0) return DEFINITION_SCHEMAS
  const { tool } = DEFINITION_SCHEMAS
  const added = Object.fromEntries([...toolKeys].map(([name, { value }]) => [name, value]))
  return { ...DEFINITION_SCHEMAS, tool: { ...tool, properties: { ...tool.properties, ...added } } }
}

const OWN_KEYS: ReadonlySet<string> = new Set(['input', 'output', '_meta'])
const NONE: ReadonlySet<string> = new Set()

function withoutUndefined(value: unknown, opaque: ReadonlySet<string> = NONE, depth = 0): unknown {
  if (depth > MAX_DEPTH || (!Array.isArray(value) && !isPlain(value))) return value
  const plain = (item: unknown) => withoutUndefined(item, NONE, depth + 1)
  if (Array.isArray(value)) return value.map(plain)
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(entries.map(([key, item]) => [key, opaque.has(key) ? item : plain(item)]))
}

const MAX_DEPTH = 4

export function formatFinding({ kind, path, found, expected, suggestion }: Finding): string {
  const hint = suggestion === undefined ? ';' : `; did you mean "${suggestion}"?`
  return `${formatPath(path)}: ${kind}${hint} found ${found}; expected ${expected}`
}

const RETURNED = 'export what defineTool, defineResource or definePrompt return'
const looksDefined = (value: unknown): value is { name: string } =>
  isPlain(value) &&
  kindOf(value) === undefined &&
  'name' in value &&
  typeof value.name === 'string' &&
  'handler' in value

interface Module {
  readonly file: string
  readonly exported: Readonly<Record<string, unknown>>
  readonly at: Path
}

/** Reports exports that look like definitions but are not, and would be ignored. */
export function explainPlainObjects({ file, exported, at }: Module): StartProblem[] {
  const values = Object.values(exported).flatMap(value => (Array.isArray(value) ? (value as unknown[]) : [value]))
  return [...new Set(values)].filter(looksDefined).map(({ name }) => {
    const text = `"${name}" is a plain object, not a definition: wrap it, as in export const it = defineTool({ ... })`
    const path = formatPath(at)
    const source = readFileSync(file, 'utf8')
    const offset = source.search(new RegExp(`['"\`]${name.replace(/\W/g, '\\$&')}['"\`]`))
    return {
      ...{ code: 'MH1103', file, path, text: `${path}: ${text}` },
      ...(offset !== -1 && { line: lineAt(source, offset) }),
    }
  })
}

export function explainNone({ file, exported, at }: Module): StartProblem {
  const path = formatPath(at)
  const names = Object.keys(exported)
  const found = names.length === 0 ? 'nothing' : names.slice(0, MAX_NAMES).join(', ')
  return { code: 'MH1102', file, path, text: `${path}: it exports no definition; ${RETURNED} (it exports ${found})` }
}

const MAX_NAMES = 5
