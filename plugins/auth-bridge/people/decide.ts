// Evaluates `allow`, `scopes` and `roles` for a user.
import { claimAt } from '../../../core/auth.ts'
import type { FilledAuthBridge, PersonRule } from '../options.ts'
import type { Person } from '../upstream/upstream.ts'

type Rules = Readonly<Record<string, PersonRule>>

export interface Standing {
  readonly roles: readonly string[]
  mayHave(scope: string): boolean
}

const list = <Value>(value: Value | readonly Value[] | undefined): readonly Value[] =>
  value === undefined ? [] : ([value].flat() as readonly Value[])

const isInDomain = ({ email }: Person, domains: readonly string[]) => {
  const domain = email?.slice(email.lastIndexOf('@') + 1).toLowerCase()
  return domain !== undefined && domains.some(one => one.toLowerCase() === domain)
}

const isInGroup = ({ groups }: Person, wanted: readonly string[]) => wanted.some(one => groups?.includes(one))

function hasClaim(person: Person, path: string, wanted: unknown): boolean {
  const found = list(claimAt(person.claims, path))
  return list(wanted).some(one => found.includes(one))
}

export function meets(person: Person, { group, domain, subject, claim }: PersonRule): boolean {
  if (group !== undefined && !isInGroup(person, list(group))) return false
  if (domain !== undefined && !isInDomain(person, list(domain))) return false
  if (subject !== undefined && !list(subject).includes(person.subject)) return false
  return Object.entries(claim ?? {}).every(([path, wanted]) => hasClaim(person, path, wanted))
}

function whyNot(person: Person, { domains = [], groups = [], subjects = [] }: FilledAuthBridge['allow']): string {
  const lacking = [
    ...(domains.length > 0 && person.email === undefined ? ['your account has no verified e-mail address'] : []),
    ...(domains.length > 0 && person.email !== undefined ? ['the domain of your e-mail address is not allowed'] : []),
    ...(groups.length > 0 && person.groups === undefined ? ['the provider does not return your groups'] : []),
    ...(groups.length > 0 && person.groups !== undefined ? ['you are not in an allowed group'] : []),
    ...(subjects.length > 0 && domains.length === 0 && groups.length === 0 ? ['you are not on the list'] : []),
  ]
  return lacking.join(', and ')
}

export function createDecide({ allow, scopes, roles }: FilledAuthBridge, denied: (subject: string) => void) {
  const isAllowed = (person: Person) =>
    allow.everyone === true ||
    isInDomain(person, allow.domains ?? []) ||
    isInGroup(person, allow.groups ?? []) ||
    (allow.subjects ?? []).includes(person.subject)
  const byScope: Rules = scopes

  return (person: Person): { readonly standing: Standing } | { readonly refused: string } => {
    if (!isAllowed(person)) {
      denied(person.subject)
      return { refused: whyNot(person, allow) }
    }
    const held = Object.entries(roles as Rules).flatMap(([role, rule]) => (meets(person, rule) ? [role] : []))
    const mayHave = (scope: string) => {
      const rule = Object.hasOwn(byScope, scope) ? byScope[scope] : undefined
      return rule === undefined || meets(person, rule)
    }
    return { standing: { roles: held, mayHave } }
  }
}

/** Returns scopes with a rule. A scope that has only a title is not restricted. */
export const restrictedScopes = ({ scopes }: Pick<FilledAuthBridge, 'scopes'>): string[] =>
  Object.entries(scopes).flatMap(([scope, { title, ...rule }]) =>
    title !== undefined && Object.keys(rule).length === 0 ? [] : scope,
  )

export const titlesOf = ({ scopes }: Pick<FilledAuthBridge, 'scopes'>): ReadonlyMap<string, string> =>
  new Map(Object.entries(scopes).flatMap(([scope, { title }]) => (title === undefined ? [] : [[scope, title]])))

export type Decide = ReturnType<typeof createDecide>
