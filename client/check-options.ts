// Looks at every option before any is used: a value that does not fit, or a name that there is none, is told at
// construction, with what was found, what fits, and what was probably meant.
import { AuthError } from './errors.ts'
import { isScope } from './json.ts'
import { nearest } from './nearest.ts'
import { type Fit, GRANTS, OPTIONS, type Shape } from './option-shapes.ts'
import { printable } from './printable.ts'

const wrong = (what: string, fix: string) => new AuthError(what, { code: 'invalid_options', fix })

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'string') return 'a text'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** What a caller gave, in a few words; of a secret only its kind. */
function describe(value: unknown, { secret }: Fit): string {
  if (secret) return kindOf(value)
  if (typeof value === 'string') return printable(JSON.stringify(value.slice(0, 60)))
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : kindOf(value)
}

function meant(value: unknown, known: readonly string[] | undefined): string {
  const near = typeof value === 'string' && known ? nearest(value, known) : undefined
  return near === undefined ? '' : `; did you mean '${near}'?`
}

function checkNames(path: string, given: object, shape: Shape): void {
  const known = Object.keys(shape)
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(shape, name)) continue
    const near = nearest(name, known)
    const fix = near === undefined ? `there are: ${known.join(', ')}` : `did you mean ${path}${near}?`
    throw wrong(`there is no option ${path}${printable(name, 60)}`, fix)
  }
}

function checkMember(path: string, value: unknown, fit: Fit): void {
  if (value === undefined) {
    if (fit.needed) throw wrong(`${path} is missing`, `give ${fit.what}`)
    return
  }
  if (!fit.fits(value)) throw wrong(`${path} is ${describe(value, fit)}`, `give ${fit.what}${meant(value, fit.known)}`)
  if (fit.members) checkShape(`${path}.`, value as object, fit.members)
}

function checkShape(path: string, given: object, shape: Shape): void {
  checkNames(path, given, shape)
  for (const [name, fit] of Object.entries(shape)) {
    checkMember(`${path}${name}`, (given as Record<string, unknown>)[name], fit)
  }
}

function checkGrant(grant: { readonly type?: unknown }): void {
  const { type } = grant
  const types: Readonly<Record<string, Shape>> = GRANTS
  const shape = typeof type === 'string' && Object.hasOwn(types, type) ? types[type] : undefined
  if (shape) {
    checkShape('grant.', grant, shape)
    return
  }
  const fit = OPTIONS.grant
  const found = type === undefined ? 'missing' : describe(type, fit)
  throw wrong(
    `grant.type is ${found}`,
    `give ${fit.what.replace('an object whose type is ', '')}${meant(type, fit.known)}`,
  )
}

/** Throws an AuthError `invalid_options` for the first option that does not fit. */
export function checkOptions(options: unknown): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw wrong(`the options are ${kindOf(options)}`, 'give an object with at least serverUrl')
  }
  checkShape('', options, OPTIONS)
  const { grant } = options as { grant?: { readonly type?: unknown } }
  if (grant !== undefined) checkGrant(grant)
}

/** Throws an AuthError `invalid_options` for what is no scope (RFC 6749 §3.3). */
export function checkScopes(name: string, scopes: readonly string[]): void {
  if (!Array.isArray(scopes)) throw wrong(`${name} is ${kindOf(scopes)}`, 'give a list of texts')
  const bad = scopes.find(scope => !isScope(scope))
  if (bad === undefined) return
  throw wrong(
    `${name} has ${printable(JSON.stringify(bad) ?? '', 80)}`,
    'each is one scope, without spaces or quotes (RFC 6749 §3.3)',
  )
}
