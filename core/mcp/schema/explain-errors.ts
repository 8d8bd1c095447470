// Explains validation errors to a model, one short line each. The values are untrusted.
import type { ErrorObject } from 'ajv'
import type { StandardResult } from '../definitions/infer.ts'
import { nearest } from '../nearest.ts'
import { isObject } from '../wire/message.ts'

export type SchemaRole = 'input' | 'output'

export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problems: string }

const MAX_LINES = 10
const MAX_SHOWN = 40
const MAX_NAMES = 10
const MAX_LINE = 300
const MAX_ALTERNATIVE = 100

export function explainErrors(errors: readonly ErrorObject[], value: unknown, role: SchemaRole): string {
  const checked = { root: value, role }
  return toLines(readErrors(errors), problem => lineOf(problem, checked))
}

/** zod adds the issues of each alternative of a union. */
type Issue = NonNullable<StandardResult<unknown>['issues']>[number] & {
  readonly errors?: readonly (readonly Issue[])[]
}

export function explainIssues(issues: NonNullable<StandardResult<unknown>['issues']>, role: SchemaRole): string {
  return toLines(issues, issue => explainIssue(issue, role))
}

function explainIssue({ path = [], message, errors = [] }: Issue, role: SchemaRole): string {
  const keys = path.map(step => (typeof step === 'object' ? step.key : step))
  const place = placeOf(keys, role)
  const reasons = errors.flatMap(([first]) =>
    first ? explainIssue({ ...first, path: [...path, ...(first.path ?? [])] }, role) : [],
  )
  if (reasons.length > 0) return `${place}: ${formsText(reasons)}`
  // Some libraries begin their message with the path.
  return `${place}: ${message.startsWith(`${place} `) ? message.slice(place.length + 1) : message}`
}

const formsText = (reasons: readonly string[]) =>
  `fits none of the allowed forms (${reasons.slice(0, 4).join('; or ')})`

function toLines<T>(problems: readonly T[], toLine: (problem: T) => string): string {
  const lines = new Set<string>()
  let seen = 0
  for (const problem of problems) {
    if (lines.size === MAX_LINES) break
    seen++
    lines.add(shorten(toLine(problem).replace(/\s+/g, ' '), MAX_LINE))
  }
  const more = problems.length - seen
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n')
}

interface CheckedValue {
  readonly root: unknown
  readonly role: SchemaRole
}

function lineOf(problem: SchemaProblem, checked: CheckedValue): string {
  const { error } = problem
  const steps = stepsOf(error.instancePath, checked.root)
  const extra = error.params['additionalProperty'] ?? error.params['unevaluatedProperty']
  if (typeof extra === 'string') {
    const kind = checked.role === 'input' && steps.length === 0 ? 'argument' : 'property'
    return `${placeOf([...steps, extra], checked.role)}: is not a known ${kind}${suggestion(extra, error)}`
  }
  if (error.keyword === 'required') {
    return `${placeOf([...steps, `${error.params['missingProperty']}`], checked.role)}: is required`
  }
  if (error.propertyName !== undefined) {
    return `${placeOf([...steps, error.propertyName], checked.role)}: is not a valid name here`
  }
  return `${placeOf(steps, checked.role)}: ${reasonOf(problem, checked)}`
}

function reasonOf({ error, alternatives }: SchemaProblem, checked: CheckedValue): string {
  const { keyword, data, message = 'is not valid' } = error
  const expected = expectedOf(error)
  if (expected) return mustBe(keyword, expected, data)
  if (keyword === 'oneOf' && error.params['passingSchemas']) {
    return 'fits more than one of the allowed forms, but must fit exactly one'
  }
  if (alternatives.length > 0) return alternativesReason(error, alternatives, checked)
  if (keyword === 'anyOf' || keyword === 'oneOf') return `fits none of the allowed forms, was ${shown(data)}`
  if (keyword === 'not') return `has a form that is not allowed, was ${shown(data)}`
  if (keyword === 'false schema') return 'is not allowed here'
  const was = isObject(data) ? '' : `, was ${shown(data)}`
  return `${message.replace('must NOT', 'must not')}${was}`
}

function expectedOf({ keyword, params }: ErrorObject): string[] | undefined {
  if (keyword === 'type') return [params['type']].flat().map(String).map(withArticle)
  if (keyword === 'const') return [shown(params['allowedValue'])]
  if (keyword === 'enum' && Array.isArray(params['allowedValues'])) {
    return params['allowedValues'].map(shown)
  }
  return undefined
}

function mustBe(keyword: string, expected: readonly string[], data: unknown): string {
  if (keyword === 'type') return `must be ${expected.join(' or ')}, was ${shown(data)}`
  const names = expected.slice(0, MAX_NAMES).join(', ')
  const more = expected.length > MAX_NAMES ? ` and ${expected.length - MAX_NAMES} more` : ''
  return `must be ${expected.length > 1 ? 'one of ' : ''}${names}${more}; was ${shown(data)}`
}

function alternativesReason(error: ErrorObject, alternatives: readonly SchemaProblem[], checked: CheckedValue): string {
  const simple = alternatives.map(({ error: inner }) =>
    inner.instancePath === error.instancePath ? expectedOf(inner) : undefined,
  )
  if (simple.every(expected => expected !== undefined)) {
    const all = [...new Set(simple.flat())]
    return mustBe(alternatives.every(({ error: inner }) => inner.keyword === 'type') ? 'type' : 'enum', all, error.data)
  }
  const near = alternatives.filter(
    ({ error: inner }) => inner.keyword !== 'type' || inner.instancePath !== error.instancePath,
  )
  const reasons = new Set(near.slice(0, MAX_NAMES).map(problem => shorten(lineOf(problem, checked), MAX_ALTERNATIVE)))
  return formsText([...reasons])
}

function suggestion(name: string, { parentSchema, data }: ErrorObject): string {
  const properties = parentSchema?.['properties']
  if (!isObject(properties) || !isObject(data) || name.length > MAX_SHOWN) return ''
  const near = nearest(
    name,
    Object.keys(properties).filter(known => !Object.hasOwn(data, known)),
  )
  return near === undefined ? '' : `; did you mean "${near}"?`
}

const PLAIN_NAME = /^[\p{L}_$][\p{L}\p{N}_$-]*$/u

/** Formats a location such as `items[2].price`. The whole value is `(arguments)` or `(result)`. */
function placeOf(steps: readonly PropertyKey[], role: SchemaRole): string {
  if (steps.length === 0) return role === 'input' ? '(arguments)' : '(result)'
  const texts = steps.map((step, index) => {
    if (typeof step === 'number') return `[${step}]`
    const name = String(step)
    if (!PLAIN_NAME.test(name) || name.length > MAX_SHOWN) return `[${JSON.stringify(shorten(name, MAX_SHOWN))}]`
    return index === 0 ? name : `.${name}`
  })
  return texts.length > 12 ? [...texts.slice(0, 6), '…', ...texts.slice(-3)].join('') : texts.join('')
}

export const shorten = (text: string, limit: number) => (text.length > limit ? `${text.slice(0, limit - 1)}…` : text)

/** Formats a JSON type, such as `an array`. */
const withArticle = (type: string) => (type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`)

function shown(value: unknown): string {
  if (Array.isArray(value)) return `an array of length ${value.length}`
  if (isObject(value)) return 'an object'
  return typeof value === 'string' ? JSON.stringify(shorten(value, MAX_SHOWN)) : String(value)
}

export interface SchemaProblem {
  readonly error: ErrorObject
  readonly alternatives: readonly SchemaProblem[]
}

const EMPTY: ReadonlySet<string> = new Set(['if', 'propertyNames'])

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

// `schemaPath` restarts after a `$ref`.
const isWithin = (error: ErrorObject, choice: ErrorObject) =>
  error.instancePath === choice.instancePath
    ? error.parentSchema !== choice.parentSchema
    : error.instancePath.startsWith(`${choice.instancePath}/`)

/** Splits a JSON pointer (RFC 6901). Array indices become numbers. */
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
