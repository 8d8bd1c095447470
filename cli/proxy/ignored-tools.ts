// Tools that the person does not want this client to have: left out of lists, and refused when they are called.
import { matchesGlob } from '../../core/mcp/glob.ts'
import { type Call, Failure, type Fields, type Outgoing, parse } from './messages.ts'

export interface IgnoredTools {
  isIgnored(tool: unknown): boolean
  /** What is to be sent in its place. Throws a Failure for a call of such a tool. */
  screen(out: Outgoing): Outgoing
}

export function createIgnoredTools(globs: readonly string[]): IgnoredTools {
  // Names of a server can be long: a glob takes linear time, and a regular expression does not.
  const isNamed = (name: unknown) => typeof name === 'string' && globs.some(glob => matchesGlob(glob, name))

  function check({ method, params: { name } }: Call) {
    if (method !== 'tools/call') return
    if (typeof name !== 'string')
      throw new Failure('ignored', 'beside --ignore-tool, a call names its tool with a string', { code: -32_602 })
    if (isNamed(name))
      throw new Failure('ignored', `the tool ${JSON.stringify(name)} is left out by --ignore-tool`, { code: -32_602 })
  }

  return {
    isIgnored: tool => isNamed((tool as Fields | null)?.['name']),
    screen(out) {
      if (globs.length === 0 || out.calls.length === 0) return out
      out.calls.forEach(check)
      // As it was read here: of a name that is given twice, its server may take the other one.
      return { ...out, text: JSON.stringify(parse(out.text)) }
    },
  }
}
