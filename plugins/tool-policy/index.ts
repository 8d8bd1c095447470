// Named policies for tools, resources and prompts: provides the slot `access`.

import type { User } from '../../core/index.ts'
import { definePlugin, type InternalHost } from '../../core/internal.ts'
import { type AuthorizeRule, type CatalogItem, type Route, StartError } from '../../core/plugin.ts'
import { requestIdIn } from '../../core/transport.ts'
import { compileRules, policyNamed, type Rules } from './item-rules.ts'
import { addMatched, checkReloadedRules, lint } from './lint.ts'
import { type FilledToolPolicy, optionsSchema, type ToolPolicyOptions } from './options.ts'
import { compilePolicy, createGrantReader, denialFor, type Path, type Report, type Requirement } from './requirement.ts'
import { createRouteAccess, logShadow, type RouteAccess } from './route-access.ts'

export type { DetailedRule, Policy, ToolPolicyOptions } from './options.ts'

function compileRule(rule: AuthorizeRule, at: Path, { policies }: Rules, report: Report): Requirement {
  const policy = rule === true ? {} : rule
  if (typeof policy !== 'string') return compilePolicy(policy)
  const otherwise = ` (for a scope or a role, write { scope: '${policy}' } or { role: '${policy}' })`
  return policyNamed(policy, { policies, at, report, otherwise })
}

function compileAuthorize(routes: readonly Route[], rules: Rules, report: Report): Map<AuthorizeRule, Requirement> {
  const compiled = new Map<AuthorizeRule, Requirement>()
  for (const { path, authorize } of routes) {
    if (authorize === undefined) continue
    compiled.set(authorize, compileRule(authorize, ['routes', path, 'authorize'], rules, report))
  }
  return compiled
}

function explain(item: CatalogItem, user: User | undefined, access: RouteAccess): string[] {
  const { sources, listed } = access.ruleOf(item)
  if (sources.length === 0) return ['no rule and no access: open to every caller of the route']
  const grants = access.grants(user)
  const lines = sources.map(({ name, requirement, mode }) => {
    const denial = denialFor(requirement, grants)
    const verdict = denial ? denial.reason : 'met'
    return `${name} needs ${requirement.text}: ${verdict}${mode === 'shadow' ? ' (shadow: not enforced)' : ''}`
  })
  return [...lines, listed ? 'visibility: listed for everybody' : 'visibility: hidden from callers without access']
}

function includingScopes(
  hierarchy: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, readonly string[]> {
  const grantsOf = createGrantReader(hierarchy)
  const found = new Map<string, string[]>()
  for (const scope of Object.keys(hierarchy).sort()) {
    for (const below of grantsOf({ scopes: [scope], roles: [], claims: {} }).scopes) {
      if (below !== scope) found.set(below, [...(found.get(below) ?? []), scope])
    }
  }
  return found
}

const SCOPE = /scope (?:or role )?"([^"]*)"/g

/** Formats the needs of a requirement. Every requirement needs a token. A scope can include another one. */
function needsOf(requirement: Requirement | undefined, { including }: Compiled): readonly string[] {
  const withIncluding = (part: string) =>
    part.replace(SCOPE, (written, scope: string) => {
      const others = including.get(scope) ?? []
      return others.length === 0 ? written : `(${[written, ...others.map(other => `scope "${other}"`)].join(' or ')})`
    })
  return requirement ? ['a signed-in caller', ...requirement.parts.map(withIncluding)] : []
}

/** During a reload, problems were already reported. */
const refuse: Report = (why, at) => {
  throw new StartError('MH2720', why, { at })
}

function compile(options: FilledToolPolicy, host: InternalHost, report: Report) {
  const rules = compileRules(options, host.config.at, report)
  const authorize = compileAuthorize(host.routes, rules, report)
  return {
    options,
    rules,
    grantsOf: createGrantReader(options.scopeHierarchy ?? {}),
    including: includingScopes(options.scopeHierarchy ?? {}),
    hasShadow: rules.mode === 'shadow' || rules.list.some(({ mode }) => mode === 'shadow'),
    authorize,
    requirementOf: (rule: AuthorizeRule): Requirement =>
      authorize.get(rule) ?? compileRule(rule, host.config.at, rules, report),
    access: new Map<Route, RouteAccess>(),
  }
}

type Compiled = ReturnType<typeof compile>

function accessOn({ access, rules, grantsOf }: Compiled, host: InternalHost, route: Route): RouteAccess {
  const known = access.get(route)
  if (known) return known
  const scopes = host.services.slot('protectedResource', route).scopesOf(route)
  const made = createRouteAccess({ path: route.path, rules, grantsOf, scopes })
  access.set(route, made)
  return made
}

function lintNow(compiled: Compiled, host: InternalHost) {
  const { rules, access, authorize, options } = compiled
  for (const route of host.routes) accessOn(compiled, host, route)
  const routeScopes = (route: Route) => [
    ...((route.authorize && authorize.get(route.authorize)?.scopes) || []),
    ...route.challengeScopes,
  ]
  lint({ host, services: host.services, rules, access, routeScopes, options })
}

/** Hosts by options: `onReload` receives the options of the new host. */
const hostOf = new WeakMap<object, InternalHost>()

function setup(host: InternalHost, options: FilledToolPolicy) {
  hostOf.set(options, host)
  const matched = new Set<string>()
  let now = compile(options, host, (why, at) => host.report(new StartError('MH2720', why, { at })))
  const on = (route: Route) => accessOn(now, host, route)
  host.provide('access', {
    by: host.name,
    audienceOf: (user, route) => on(route).audienceOf(user),
    authorize: (rule, user) => denialFor(now.requirementOf(rule), user && now.grantsOf(user)),
    scopesToEnter: (rule, user) => now.requirementOf(rule).evaluate(now.grantsOf(user)).needed,
    deniesInBody: () => now.options.onDenied === 'error',
    denied({ method, headers, user, offer: { route } }, item, { reason, scopes }) {
      const { key, kind } = item
      const who = { issuer: user?.issuer, subject: user?.subject, requestId: requestIdIn(headers) }
      host.log.info(
        { code: 'MH2727', denied: 'call', method, item: key, kind, route: route.path, ...who, reason, scopes },
        'denied a call',
      )
    },
    needs: (of, route) => needsOf('item' in of ? on(route).ruleOf(of.item).enforced : now.requirementOf(of.rule), now),
    explain: (item, user, route) => explain(item, user, on(route)),
  })
  host.variesByCaller()
  const { hasShadow } = now
  if (hasShadow) logShadow(host, call => now.access.get(call.offer.route))
  host.onReady(() => {
    lintNow(now, host)
    addMatched({ host, rules: now.rules }, matched)
  })
  host.onReload<FilledToolPolicy>(changed => {
    const next = compile(changed, host, refuse)
    const nextHost = hostOf.get(changed)
    if (nextHost) checkReloadedRules({ host, rules: now.rules }, { host: nextHost, rules: next.rules }, matched)
    // Shadow rules are logged only if there was one at startup.
    if (next.hasShadow && !hasShadow) return undefined
    for (const route of host.routes) accessOn(next, host, route)
    return () => {
      now = next
    }
  })
}

export const toolPolicy = definePlugin<ToolPolicyOptions, FilledToolPolicy>({
  options: optionsSchema,
  provides: ['access', 'policy'],
  setup,
})
