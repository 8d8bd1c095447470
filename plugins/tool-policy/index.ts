// Who may use which tools, resources and prompts: named policies, attached by a definition's `access` or by the
// operator's rules. It fills the slot `access`, which every method asks (core/mcp/methods/admission.ts).
import {
  type AccessDecider,
  type AuthorizeRule,
  type CatalogItem,
  definePlugin,
  type PluginHost,
  type Route,
  type User,
} from '../../core/index.ts'
import { compileRules, policyNamed, type Rules } from './item-rules.ts'
import { lint } from './lint.ts'
import { type FilledToolPolicy, optionsSchema, type ToolPolicyOptions } from './options.ts'
import { compilePolicy, createHolder, denialFor, type Requirement } from './requirement.ts'
import { createRouteAccess, type RouteAccess } from './route-access.ts'
import { logShadow } from './shadow.ts'

export type { DetailedRule, Policy, ToolPolicyOptions } from './options.ts'

/** What each route's `authorize` asks, by the rule as written. Throws a StartError for an unknown policy. */
function compileAuthorize(routes: readonly Route[], { policies }: Rules): Map<AuthorizeRule, Requirement> {
  const compiled = new Map<AuthorizeRule, Requirement>()
  for (const { path, authorize } of routes) {
    if (authorize === undefined) continue
    const where = `routes['${path}'].authorize`
    const asked = authorize === true ? {} : authorize
    compiled.set(
      authorize,
      typeof asked === 'string'
        ? policyNamed(asked, policies, where, ` (a scope or a role is { scope: '${asked}' } or { role: '${asked}' })`)
        : compilePolicy(asked, where),
    )
  }
  return compiled
}

/** What each thing that restricts an item says of a caller, for `mcp-host explain`. */
function explain(item: CatalogItem, user: User | undefined, access: RouteAccess): string[] {
  const { sources, listed } = access.ruleOf(item)
  if (sources.length === 0) return ['no rule and no access: open to every caller of the route']
  const held = access.held(user)
  const lines = sources.map(({ name, requirement, mode }) => {
    const denial = denialFor(requirement, held)
    const verdict = denial ? denial.reason : 'met'
    return `${name} needs ${requirement.text}: ${verdict}${mode === 'shadow' ? ' (shadow: not enforced)' : ''}`
  })
  return [...lines, listed ? 'visibility: listed for everybody' : 'visibility: hidden from those who may not use it']
}

function setup(host: PluginHost, options: FilledToolPolicy) {
  const where = `plugins['${host.name}']`
  const rules = compileRules(options, where)
  const holderOf = createHolder(options.scopeHierarchy ?? {})
  const authorize = compileAuthorize(host.routes, rules)
  // Routes that switch this plugin off, or give it other options, are somebody else's.
  const elsewhere = host.slot('access')
  const access = new Map(
    host.routes.map(route => {
      const scopes = () => host.slot('protectedResource').scopesOf(route)
      return [route, createRouteAccess({ path: route.path, rules, holderOf, scopes })] as const
    }),
  )

  const decider: AccessDecider = {
    audienceOf: (user, route) => access.get(route)?.audienceOf(user) ?? elsewhere.audienceOf(user, route),
    authorize(rule, user, route) {
      const requirement = access.has(route) ? authorize.get(rule) : undefined
      if (!requirement) return elsewhere.authorize(rule, user, route)
      return denialFor(requirement, user && holderOf(user))
    },
    scopesToEnter(rule, user, route) {
      const requirement = access.has(route) ? authorize.get(rule) : undefined
      return requirement?.standingOf(holderOf(user)).needed ?? elsewhere.scopesToEnter?.(rule, user, route) ?? []
    },
    deniesInBody: route => (access.has(route) ? options.onDenied === 'error' : elsewhere.deniesInBody(route)),
    denied({ method, user, session: { route } }, item, { reason, scopes }) {
      const { key, kind } = item
      const { issuer, subject } = user ?? {}
      host.log.info(
        { denied: 'call', method, item: key, kind, route: route.path, issuer, subject, reason, scopes },
        'denied a call',
      )
    },
    explain(item, user, route) {
      const here = access.get(route)
      return here ? explain(item, user, here) : (elsewhere.explain?.(item, user, route) ?? [])
    },
  }
  host.fill('access', decider)
  host.variesByCaller()
  const hasShadow = rules.mode === 'shadow' || rules.list.some(({ mode }) => mode === 'shadow')
  if (hasShadow) logShadow(host, call => access.get(call.session.route))
  const routeScopes = (route: Route) => [
    ...((route.authorize && authorize.get(route.authorize)?.scopes) || []),
    ...route.challengeScopes,
  ]
  host.starting(() => lint({ host, rules, access, routeScopes, options }))
}

export const toolPolicy = definePlugin<ToolPolicyOptions, FilledToolPolicy>({
  options: optionsSchema,
  provides: ['access', 'policy'],
  setup,
})
