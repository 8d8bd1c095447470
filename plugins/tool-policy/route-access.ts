// Who may use what on one route. Callers to whom every requirement of the route says the same are one audience, with
// one view; what a user's audience is, is found out once for each user object.
import type { Audience, CatalogItem, Denial } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import { type ItemRule, type Rules, ruleOf } from './item-rules.ts'
import { denialFor, type Held, type Requirement } from './requirement.ts'

export interface RouteAccess {
  audienceOf(user: User | undefined): Audience
  /** What an item asks here. */
  ruleOf(item: CatalogItem): ItemRule
  held(user: User | undefined): Held | undefined
}

export interface RouteAccessSettings {
  /** The route: keys of one are never those of another. */
  readonly path: string
  readonly rules: Rules
  readonly holderOf: (user: User) => Held
  /** The scopes that the route's metadata says there are. */
  readonly scopes: readonly string[] | undefined
}

export function createRouteAccess({ path, rules, holderOf, scopes }: RouteAccessSettings): RouteAccess {
  const items = new WeakMap<CatalogItem, ItemRule>()
  /** The distinct requirements that occurred, by their ids; a definition that comes later may add one. */
  const requirements = new Map<string, Requirement>()
  /** Distinct denials, numbered: the parts of an audience's key. */
  const numbers = new Map<string, number>()
  let audiences = new WeakMap<User, Audience>()
  let anonymous: Audience | undefined

  function itemRule(item: CatalogItem): ItemRule {
    const known = items.get(item)
    if (known) return known
    const rule = ruleOf(item, rules, scopes)
    items.set(item, rule)
    if (rule.enforced && !requirements.has(rule.enforced.id)) {
      requirements.set(rule.enforced.id, rule.enforced)
      // Nobody's key says yet how they stand to this: each is longer from now on, and meets no view of before.
      audiences = new WeakMap()
      anonymous = undefined
    }
    return rule
  }

  function outcome(denial: Denial | undefined): number {
    const text = denial ? JSON.stringify([denial.reason, denial.scopes]) : ''
    const number = numbers.get(text) ?? numbers.size
    numbers.set(text, number)
    return number
  }

  function createAudience(user: User | undefined): Audience {
    const held = user && holderOf(user)
    const denials = new Map<string, Denial | undefined>()
    function denialOf(requirement: Requirement): Denial | undefined {
      if (!denials.has(requirement.id)) denials.set(requirement.id, denialFor(requirement, held))
      return denials.get(requirement.id)
    }
    const outcomes = [...requirements.values()].map(requirement => outcome(denialOf(requirement)))
    return {
      key: `${path} ${outcomes.join('.')}`,
      denialOf(item) {
        const { enforced, listed } = itemRule(item)
        const denial = enforced && denialOf(enforced)
        return denial && { ...denial, listed }
      },
    }
  }

  return {
    audienceOf(user) {
      if (!user) {
        anonymous ??= createAudience(undefined)
        return anonymous
      }
      const audience = audiences.get(user) ?? createAudience(user)
      audiences.set(user, audience)
      return audience
    },
    ruleOf: itemRule,
    held: user => user && holderOf(user),
  }
}
