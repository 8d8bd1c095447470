// From ajv's flat list of errors to what is wrong: the errors of a choice's alternatives stand under the choice.
// For explain-errors.ts, which tells a model, and for core/config/explain-problems.ts, which tells an operator.
import type { ErrorObject } from 'ajv'

/** An error; of `anyOf` and `oneOf`, with what kept each alternative from fitting. */
export interface SchemaProblem {
  readonly error: ErrorObject
  readonly alternatives: readonly SchemaProblem[]
}

/** These say only that some other error is there. */
const EMPTY: ReadonlySet<string> = new Set(['if', 'propertyNames'])

/** Of errors that ajv gave with `allErrors` and `verbose`: it lists what is wrong with each alternative, then the choice. */
export function readErrors(errors: readonly ErrorObject[]): SchemaProblem[] {
  const problems: SchemaProblem[] = []
  for (const error of errors) {
    if (EMPTY.has(error.keyword)) continue
    const alternatives: SchemaProblem[] = []
    if (error.keyword === 'anyOf' || error.keyword === 'oneOf') {
      for (let last = problems.at(-1); last && isWithin(last.error, error); last = problems.at(-1)) {
        alternatives.unshift(last)
        problems.pop()
      }
    }
    problems.push({ error, alternatives })
  }
  return problems
}

// Paths in the schema would not tell: they begin anew behind a `$ref`. Ajv says what a choice's own schema asks beside
// it either of the same value, under the same schema, or after the choice.
const isWithin = (error: ErrorObject, choice: ErrorObject) =>
  error.instancePath === choice.instancePath
    ? error.parentSchema !== choice.parentSchema
    : error.instancePath.startsWith(`${choice.instancePath}/`)

/** The steps of a JSON Pointer (RFC 6901) into a value; numbers where the value there is an array. */
export function stepsOf(pointer: string, root: unknown): (string | number)[] {
  let value = root
  return pointer
    .split('/')
    .slice(1)
    .map(raw => {
      const key = raw.replaceAll('~1', '/').replaceAll('~0', '~')
      const step = Array.isArray(value) ? Number(key) : key
      value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
      return step
    })
}
