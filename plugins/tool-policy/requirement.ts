// Compiles policies to requirements, which determine the needed and missing rights of a caller.
import { claimAt } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import type { Denial } from '../../core/plugin.ts'
import type { ClaimValue, Policy } from './options.ts'

/** The scopes of a caller, including all implied scopes. */
export interface Grants {
  readonly scopes: ReadonlySet<string>
  readonly roles: readonly string[]
  readonly claims: Readonly<Record<string, unknown>>
}

export interface Evaluation {
  /** Every required scope, including those that the caller has. */
  readonly needed: readonly string[]
  readonly missingScopes: readonly string[]
  /** Requirements that no scope satisfies, in words. */
  readonly missingOther: readonly string[]
}

export interface Requirement {
  readonly id: string
  readonly text: string
  readonly parts: readonly string[]
  readonly scopes: readonly string[]
  evaluate(grants: Grants): Evaluation
}

export type Path = InternalHost['config']['at']

const list = <T>(value: T | readonly T[] | undefined): readonly T[] =>
  value === undefined ? [] : Array.isArray(value) ? (value as readonly T[]) : [value as T]
const unique = (names: readonly string[]) => [...new Set(names)]
const isMet = ({ missingScopes, missingOther }: Evaluation) => missingScopes.length + missingOther.length === 0
const joined = (evaluations: readonly Evaluation[]): Evaluation => ({
  needed: unique(evaluations.flatMap(({ needed }) => needed)),
  missingScopes: unique(evaluations.flatMap(({ missingScopes }) => missingScopes)),
  missingOther: unique(evaluations.flatMap(({ missingOther }) => missingOther)),
})

const met: Evaluation = { needed: [], missingScopes: [], missingOther: [] }

const need = (
  id: string,
  text: string,
  evaluate: Requirement['evaluate'],
  scopes: readonly string[] = [],
): Requirement => ({ id, text, parts: [text], scopes, evaluate })

/** Creates a requirement that no scope satisfies. */
const needOther = (id: string, text: string, isMet: (grants: Grants) => boolean) =>
  need(id, text, grants => (isMet(grants) ? met : { ...met, missingOther: [text] }))

/** `claim`: a claim that can contain the scope, too, as a list or a space-separated string (RFC 8693 section 4.2). */
function needScope(scope: string, claim?: string): Requirement {
  const isClaimed = (value: unknown) => (typeof value === 'string' ? value.split(' ') : list(value)).includes(scope)
  const isHeld = ({ scopes, claims }: Grants) =>
    scopes.has(scope) || (claim !== undefined && isClaimed(claimAt(claims, claim)))
  const evaluate = (grants: Grants) => ({ ...met, needed: [scope], missingScopes: isHeld(grants) ? [] : [scope] })
  return need(`${claim ?? ''} scope ${scope}`, `scope "${scope}"`, evaluate, [scope])
}

const needRole = (role: string): Requirement =>
  needOther(`role ${role}`, `role "${role}"`, ({ roles }) => roles.includes(role))

const needScopes = (text: string, claim: string): Requirement =>
  allOf(text.split(' ').map(scope => needScope(scope, claim)))

function needClaim(name: string, values: readonly ClaimValue[]): Requirement {
  if (name === 'scope' || name === 'scp') return anyOf(values.map(value => needScopes(String(value), name)))
  const text = `claim "${name}" = ${values.map(value => JSON.stringify(value)).join(' or ')}`
  return needOther(`claim ${JSON.stringify([name, values])}`, text, ({ claims }) =>
    list(claimAt(claims, name)).some(entry => values.includes(entry as ClaimValue)),
  )
}

export function allOf(parts: readonly Requirement[]): Requirement {
  const [only] = parts
  if (only && parts.length === 1) return only
  return {
    id: `all ${JSON.stringify(parts.map(({ id }) => id).sort())}`,
    text: parts.map(({ text }) => text).join(' and ') || 'any signed-in caller',
    parts: unique(parts.flatMap(({ parts }) => parts)),
    scopes: unique(parts.flatMap(({ scopes }) => scopes)),
    evaluate: grants => joined(parts.map(part => part.evaluate(grants))),
  }
}

/** True if fewer parts are missing. Parts without a scope count most. */
const isNearer = (one: Evaluation, other: Evaluation) =>
  one.missingOther.length - other.missingOther.length < 0 ||
  (one.missingOther.length === other.missingOther.length && one.missingScopes.length < other.missingScopes.length)

function anyOf(parts: readonly Requirement[]): Requirement {
  const [only] = parts
  if (only && parts.length === 1) return only
  const text = `(${parts.map(({ text }) => text).join(' or ')})`
  const evaluate = (grants: Grants) =>
    parts.map(part => part.evaluate(grants)).reduce((best, next) => (isNearer(next, best) ? next : best))
  const id = `any ${JSON.stringify(parts.map(part => part.id))}`
  return need(id, text, evaluate, unique(parts.flatMap(({ scopes }) => scopes)))
}

/** The requirement of an `access` that is no policy. `isScope`: false if the metadata lists only other scopes. */
export function needScopeOrRole(name: string, isScope: boolean): Requirement {
  const { evaluate } = anyOf([needScope(name), needRole(name)])
  const text = `scope or role "${name}"`
  return need(`${isScope ? 'scope or role' : 'role or scope'} ${name}`, text, grants => {
    const evaluation = evaluate(grants)
    return isMet(evaluation) || isScope ? evaluation : { ...met, missingOther: [text] }
  })
}

export type Report = (why: string, at: Path) => void

export function compilePolicy({ scope, role, claim = {}, anyOf: alternatives, allOf: all = [] }: Policy): Requirement {
  return allOf([
    ...list(scope).map(one => needScope(one)),
    ...list(role).map(needRole),
    ...Object.entries(claim).map(([name, value]) => needClaim(name, list(value))),
    ...(alternatives ? [anyOf(alternatives.map(compilePolicy))] : []),
    ...all.map(compilePolicy),
  ])
}

export function createGrantReader(
  hierarchy: Readonly<Record<string, readonly string[]>>,
): (user: Pick<User, 'scopes' | 'roles' | 'claims'>) => Grants {
  const included = new Map(Object.entries(hierarchy))
  return ({ scopes, roles, claims }) => {
    const all = new Set(scopes)
    // A Set also iterates over elements that are added during the iteration.
    for (const scope of all) for (const below of included.get(scope) ?? []) all.add(below)
    return { scopes: all, roles, claims }
  }
}

const NOTHING: Grants = { scopes: new Set(), roles: [], claims: {} }

export function denialFor({ evaluate }: Requirement, grants: Grants | undefined): Denial | undefined {
  const evaluation = evaluate(grants ?? NOTHING)
  const { needed, missingScopes, missingOther } = evaluation
  if (!grants) return { reason: 'no token', scopes: needed, listed: false }
  if (isMet(evaluation)) return undefined
  const lacks = [...missingScopes.map(scope => `scope "${scope}"`), ...missingOther].join(', ')
  return { reason: `lacks ${lacks}`, scopes: missingScopes.length > 0 ? needed : [], listed: false }
}
