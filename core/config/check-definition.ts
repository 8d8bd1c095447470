// Says what is wrong with the keys of a tool, a resource or a prompt: a key that is not known would do nothing, and one
// that was meant to protect would leave open what it is on. core/mcp/catalog.ts checks every definition that it takes;
// check-config.ts and core/config/load-toolsets.ts check theirs before, all at once and with lines.

import { formatPath } from '../http/errors.ts'
import { type Definition, kindOf } from '../mcp/define.ts'
import { DEFINITION_SCHEMAS } from './definition-schema.ts'
import type { Finding } from './explain-problems.ts'
import { withForeignNames } from './foreign-names.ts'
import { isPlain } from './plain.ts'
import { validateValue } from './validate-value.ts'

/** What is wrong with a definition, paths beginning at it; empty for what is none. A key that is undefined is absent. */
export function findFaults(definition: Definition): Finding[] {
  const kind = kindOf(definition)
  if (kind === undefined) return []
  const findings = validateValue(withoutUndefined(definition, OWN_KEYS), DEFINITION_SCHEMAS[kind], [])
  return findings.length === 0 ? findings : withForeignNames(findings, kind)
}

/** Keys whose values are not ours to judge here. */
const OWN_KEYS: ReadonlySet<string> = new Set(['input', 'output', '_meta'])
const NONE: ReadonlySet<string> = new Set()

/** What is written out, without keys that are undefined, and without the symbol that marks a definition. */
function withoutUndefined(value: unknown, opaque: ReadonlySet<string> = NONE, depth = 0): unknown {
  // No key of ours is as deep; what is may go round in a circle.
  if (depth > MAX_DEPTH || (!Array.isArray(value) && !isPlain(value))) return value
  const plain = (item: unknown) => withoutUndefined(item, NONE, depth + 1)
  if (Array.isArray(value)) return value.map(plain)
  const given = Object.entries(value).filter(([, item]) => item !== undefined)
  return Object.fromEntries(given.map(([key, item]) => [key, opaque.has(key) ? item : plain(item)]))
}

const MAX_DEPTH = 4

/** One finding in a line. */
export function describeFault({ kind, path, found, expected, suggestion }: Finding): string {
  const hint = suggestion === undefined ? ';' : `; did you mean "${suggestion}"?`
  return `${formatPath(path)}: ${kind}${hint} found ${found}; expected ${expected}`
}

/** The same as lines: what the catalog asks of every definition that it takes. */
export const faultsOf = (definition: Definition): string[] => findFaults(definition).map(describeFault)
