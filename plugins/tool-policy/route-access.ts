// Access to the items of one route. Callers with equal results share one view. Also logs shadow mode.
import { findResource } from '../../core/auth.ts'
import type { User } from '../../core/index.ts'
import type { InternalHost } from '../../core/internal.ts'
import { type Audience, type Call, type CatalogItem, type Denial, isObject } from '../../core/plugin.ts'
import { type ItemRule, type Rules, ruleOf } from './item-rules.ts'
import { denialFor, type Grants, type Requirement } from './requirement.ts'

export type RouteAccess = ReturnType<typeof createRouteAccess>

interface RouteAccessSettings {
  readonly path: string
  readonly rules: Rules
  readonly grantsOf: (user: User) => Grants
  readonly scopes: readonly string[] | undefined
}

export function createRouteAccess({ path, rules, grantsOf, scopes }: RouteAccessSettings) {
  const items = new WeakMap<CatalogItem, ItemRule>()
  const requirements = new Map<string, Requirement>()
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
      // Existing keys do not include the new requirement.
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
    const grants = user && grantsOf(user)
    const denials = new Map<string, Denial | undefined>()
    function denialOf(requirement: Requirement): Denial | undefined {
      if (!denials.has(requirement.id)) denials.set(requirement.id, denialFor(requirement, grants))
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
    audienceOf(user: User | undefined): Audience {
      if (!user) {
        anonymous ??= createAudience(undefined)
        return anonymous
      }
      const audience = audiences.get(user) ?? createAudience(user)
      audiences.set(user, audience)
      return audience
    },
    ruleOf: itemRule,
    grants: (user: User | undefined): Grants | undefined => user && grantsOf(user),
  }
}

const RESOURCE_METHODS = new Set(['resources/read', 'resources/subscribe', 'skills/get'])

function itemsOf({ method, params, view }: Call): CatalogItem[] {
  const resource = (uri: unknown) => (typeof uri === 'string' ? findResource(view, uri)?.item : undefined)
  const prompt = (name: unknown) => (typeof name === 'string' ? view.prompts.get(name) : undefined)
  const used = (): Array<CatalogItem | undefined> => {
    const { name } = params
    if (method === 'tools/call') return [typeof name === 'string' ? view.tools.get(name) : undefined]
    if (method === 'prompts/get') return [prompt(name)]
    if (RESOURCE_METHODS.has(method)) return [resource(params['uri'])]
    if (method === 'completion/complete' && isObject(params['ref'])) {
      const { name, uri } = params['ref']
      return [prompt(name) ?? view.templates.find(({ key }) => key === uri) ?? resource(uri)]
    }
    if (method !== 'subscriptions/listen' || !isObject(params['notifications'])) return []
    const uris = params['notifications']['resourceSubscriptions']
    return Array.isArray(uris) ? [...new Set(uris.map(resource))] : []
  }
  return used().filter(item => item !== undefined)
}

export function logShadow(host: InternalHost, accessOf: (call: Call) => RouteAccess | undefined): void {
  host.onCall((call, next) => {
    const access = accessOf(call)
    for (const item of access ? itemsOf(call) : []) {
      const { shadow } = access?.ruleOf(item) ?? {}
      const denial = shadow && denialFor(shadow, access?.grants(call.user))
      if (!denial) continue
      const { user, method, offer } = call
      host.log.info(
        {
          code: 'MH2728',
          shadow: true,
          method,
          item: item.key,
          kind: item.kind,
          route: offer.route.path,
          issuer: user?.issuer,
          subject: user?.subject,
          reason: denial.reason,
          scopes: denial.scopes,
        },
        'a rule in shadow mode would have denied a call',
      )
    }
    return next()
  })
}
