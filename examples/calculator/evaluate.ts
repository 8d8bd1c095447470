// Evaluates an arithmetic expression that a stranger wrote: numbers in, one finite number out, and bounded work.
// calculator.ts turns it into a tool.
import { Parser } from 'expr-eval-fork'
import { ToolError } from 'mcp-host'

const CONSTANTS = { pi: Math.PI, PI: Math.PI, e: Math.E, E: Math.E }
const FUNCTIONS = ['min', 'max', 'pow', 'hypot', 'atan2', 'roundTo'] as const

// The library can do much more: strings, arrays, assignment, functions of one's own. What is off here cannot be abused.
const OFF = ['assignment', 'fndef', 'array', 'concatenate', 'conditional', 'comparison', 'logical', 'in'] as const
const OFF_FUNCTIONS = ['random', 'length', 'not'] as const

/** Copies onto an object without a prototype, on which `constructor` and its like are not there to be found. */
const bare = <T extends object>(source: T): T => Object.assign(Object.create(null), source)

function createParser(): Parser {
  const operators = Object.fromEntries([...OFF, ...OFF_FUNCTIONS].map(name => [name, false]))
  const parser = new Parser({ allowMemberAccess: false, operators })
  const { functions } = parser
  parser.functions = bare(Object.fromEntries(FUNCTIONS.map(name => [name, functions[name]])))
  parser.unaryOps = bare(parser.unaryOps)
  for (const name of OFF_FUNCTIONS) delete parser.unaryOps[name]
  parser.consts = bare(CONSTANTS)
  return parser
}

const parser = createParser()

/** The functions that an expression may call. */
export const FUNCTION_NAMES: readonly string[] = [...Object.keys(parser.unaryOps), ...FUNCTIONS].filter(name =>
  /^\w+$/.test(name),
)

const isTaken = (name: string) => FUNCTION_NAMES.includes(name) || name in CONSTANTS

/**
 * The value of `expression`, in double precision. There are no loops and no definitions in the language, so the work
 * grows with the text alone: the caller limits its length. Throws a ToolError for anything but a finite number.
 */
export function evaluate(expression: string, variables: Readonly<Record<string, number>> = {}): number {
  // Quotes, brackets, semicolons and backslashes are no arithmetic: they never get as far as the parser.
  const stray = /[^\w\s.,+\-*/%^!()]/u.exec(expression)
  if (stray) throw new ToolError(`The expression has a "${stray[0]}", which is not arithmetic.`)
  const taken = Object.keys(variables).find(isTaken)
  if (taken !== undefined) throw new ToolError(`The variable "${taken}" has the name of a function or a constant.`)
  const value = compute(expression, variables)
  if (typeof value !== 'number') throw new ToolError('The result is not a number.')
  if (Number.isNaN(value)) throw new ToolError('The result is undefined, as 0/0 or the root of a negative number is.')
  if (!Number.isFinite(value)) throw new ToolError('The result is infinite, or too large for double precision.')
  return value
}

function compute(expression: string, variables: Readonly<Record<string, number>>): unknown {
  try {
    return parser.parse(expression).evaluate(bare(variables))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'unreadable'
    throw new ToolError(`The expression cannot be evaluated: ${reason}.`, { cause })
  }
}
