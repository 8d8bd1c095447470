// Warns about probable mistakes at startup, and refuses reloads that can open restricted items.

import { matchesGlob } from '../../core/auth.ts'
import { type InternalHost, nearest, type Services } from '../../core/internal.ts'
import { type CatalogItem, type McpRoute, type Route, StartError } from '../../core/plugin.ts'
import { fits, type Rule, type Rules, ruleOf, skillFoldersOf } from './item-rules.ts'
import type { DetailedRule, Policy, ToolPolicyOptions } from './options.ts'
import type { RouteAccess } from './route-access.ts'

interface LintSubject {
  readonly host: InternalHost
  readonly services: Services
  readonly rules: Rules
  readonly access: ReadonlyMap<Route, RouteAccess>
  readonly routeScopes: (route: Route) => readonly string[]
  readonly options: ToolPolicyOptions
}

type Items = ReadonlyMap<McpRoute, readonly CatalogItem[]>

const prefixHint = ({ kind, glob }: Rule) =>
  kind === 'tools' && glob.includes('://') ? `; a rule over URIs begins with "resource:"` : ''

/** A skill rule without a match fails startup if there are skills, because it would leave them open. */
function lintRules({ host, services, rules }: LintSubject, items: readonly CatalogItem[]) {
  const hasSkills = items.some(({ key, kind }) => kind === 'resources' && skillFoldersOf(key).length > 0)
  for (const rule of rules.list) {
    if (items.some(item => fits(rule, item))) continue
    const alike = items.filter(({ kind }) => kind === rule.kind).map(({ key }) => key)
    const keys = rule.ofSkills ? new Set(alike.flatMap(skillFoldersOf)) : alike
    const near = nearest(rule.glob.replaceAll('*', ''), keys)
    if (near === undefined && !services.hasStaticItems()) continue
    const hint = prefixHint(rule) || (near === undefined ? '' : `; did you mean "${near}"?`)
    const what = `the rule matches nothing that is defined at startup${hint}`
    const found = new StartError('MH2721', what, { at: [...host.config.at, 'rules', rule.key] })
    if (rule.ofSkills && hasSkills) host.report(found)
    else host.report(found, 'warning')
  }
}

const reachableItems = ({ routes, services }: InternalHost) => routes.flatMap(route => services.reachableItemsOf(route))

type Version = Pick<LintSubject, 'host' | 'rules'>

const idOf = ({ kind, key }: CatalogItem) => `${kind} ${key}`

/** The items of upstream servers and documents at a URL that `current` serves now. */
const lateItems = ({ routes, services }: InternalHost, current = services) =>
  routes.flatMap(({ toolsets }) =>
    toolsets.flatMap(name => (services.sourceOf(name)?.isLate ? current.itemsIn(name) : [])),
  )

/** Adds the keys of rules that match. Servers and documents at a URL do not count, because they can be missing for a while. */
export function addMatched({ host, rules }: Version, matched: Set<string>): void {
  const late = new Set(lateItems(host).map(idOf))
  const items = reachableItems(host).filter(item => !late.has(idOf(item)))
  for (const rule of rules.list) if (items.some(item => fits(rule, item))) matched.add(rule.key)
}

/**
 * Throws a StartError if a rule that is new or matched before (`matched`: keys) matches nothing, and an item is new or loses
 * a rule: it may be the one that the rule restricts.
 */
export function checkReloadedRules(now: Version, { host, rules }: Version, matched: Set<string>): void {
  const isIn = ({ list }: Rules, rule: Rule) => list.some(({ key }) => key === rule.key)
  addMatched(now, matched)
  const after = [...reachableItems(host), ...lateItems(host, now.host.services)]
  const known = new Set(reachableItems(now.host).map(idOf))
  const removed = now.rules.list.filter(rule => rule.mode === 'enforce' && !isIn(rules, rule))
  const losing = after.find(item => known.has(idOf(item)) && removed.some(rule => fits(rule, item)))
  for (const rule of rules.list) {
    const hasMatched = matched.has(rule.key)
    if (rule.mode === 'shadow' || (isIn(now.rules, rule) && !hasMatched)) continue
    if (after.some(item => fits(rule, item))) continue
    const isExact = !rule.glob.includes('*') && host.services.hasStaticItems()
    const isRisk = (item: CatalogItem) => hasMatched || (isExact && !ruleOf(item, rules, undefined).enforced)
    const item = losing ?? after.find(one => !known.has(idOf(one)) && one.kind === rule.kind && isRisk(one))
    if (!item) continue
    const risk = `${item.kind.slice(0, -1)} "${item.key}" ${item === losing ? 'would lose a rule' : 'is new'}`
    const what = `the rule matches nothing, and ${risk}; correct the key, or remove the rule if its item no longer exists`
    throw new StartError('MH2721', what, { at: [...now.host.config.at, 'rules', rule.key] })
  }
}

/** Warns about scopes that are missing from the metadata, where clients cannot find them. */
function lintScopes({ host, services, access, routeScopes }: LintSubject, route: Route, items: readonly CatalogItem[]) {
  const supported = services.slot('protectedResource', route).scopesOf(route)
  if (!supported) return
  const sources = items.flatMap(item => access.get(route)?.ruleOf(item).sources ?? [])
  const scopes = new Set([...routeScopes(route), ...sources.flatMap(({ requirement }) => requirement.scopes)])
  for (const scope of scopes) {
    if (!supported.includes(scope)) {
      host.log.warn({ code: 'MH1219', route: route.path, scope }, 'A required scope is not in scopesSupported')
    }
  }
}

function lintHierarchy({ host, services, access, routeScopes, options }: LintSubject, items: Items) {
  const { scopeHierarchy = {} } = options
  const named = new Set(Object.keys(scopeHierarchy))
  for (const [route, list] of items) {
    const sources = list.flatMap(item => access.get(route)?.ruleOf(item).sources ?? [])
    const supported = services.slot('protectedResource', route).scopesOf(route) ?? []
    for (const scope of [...supported, ...routeScopes(route)]) named.add(scope)
    for (const { requirement } of sources) for (const scope of requirement.scopes) named.add(scope)
  }
  for (const [scope, included] of Object.entries(scopeHierarchy)) {
    for (const [index, name] of included.entries()) {
      if (named.has(name)) continue
      const near = nearest(name, named)
      const hint = near === undefined ? '' : `; did you mean "${near}"?`
      const why = `"${name}" is in no rule, no route and no scopesSupported, so including it has no effect${hint}`
      host.report(new StartError('MH2722', why, { at: [...host.config.at, 'scopeHierarchy', scope, index] }), 'warning')
    }
  }
}

function lintPolicies({ host, rules, options }: LintSubject, items: readonly CatalogItem[]) {
  const used = new Set<unknown>([
    ...Object.values(options.rules ?? {}).map(rule =>
      typeof rule === 'object' && 'policy' in rule ? rule.policy : rule,
    ),
    ...host.routes.map(({ authorize }) => authorize),
    ...items.map(({ definition }) => definition.access),
  ])
  for (const name of rules.policies.keys()) {
    if (used.has(name)) continue
    const why = 'nothing uses this policy; name it in a rule, in `authorize` of a route or in `access` of a tool'
    host.report(new StartError('MH2723', why, { at: [...host.config.at, 'policies', name] }), 'warning')
  }
}

function namesIn(policy: string | Policy | DetailedRule | true | undefined): string[] {
  if (typeof policy !== 'object') return []
  if ('policy' in policy) return namesIn(policy.policy)
  const { scope = [], role = [], anyOf = [], allOf = [] } = policy
  return [...[scope, role].flat(), ...[...anyOf, ...allOf].flatMap(namesIn)]
}

const FIX = "add a scope to plugins['resource-metadata'].scopesSupported, or name a role in a policy"

/** Warns about an `access` that is no policy, scope or role of the config, which hides the item. */
function lintAccess({ host, services, rules, options }: LintSubject, items: Items) {
  const { policies = {}, rules: written = {}, scopeHierarchy = {} } = options
  const general = [
    ...rules.policies.keys(),
    ...[...Object.values(policies), ...Object.values(written)].flatMap(namesIn),
    ...Object.entries(scopeHierarchy).flat(2),
  ]
  for (const [route, list] of items) {
    const known = new Set([
      ...general,
      ...namesIn(route.authorize),
      ...(services.slot('protectedResource', route).scopesOf(route) ?? []),
    ])
    for (const access of new Set(list.map(({ definition }) => definition.access))) {
      if (access === undefined || known.has(access)) continue
      const [item, ...others] = list.filter(({ definition }) => definition.access === access)
      if (!item) continue
      const { key, kind, definition } = item
      const near = nearest(access, known)
      const hint = near === undefined ? '' : `did you mean "${near}"? If not: `
      const which = `${kind.slice(0, -1)} "${key}"${others.length === 0 ? '' : ` (and ${others.length} more)`}`
      const what = `${which} requires "${access}", which is not a policy, scope or role of the config`
      const where = `on ${route.path} it is hidden from callers without it`
      const text = `${what}: ${where}; ${hint}${FIX}`
      const toolset = route.toolsets.find(name => services.itemsIn(name).includes(item))
      const source = toolset === undefined ? undefined : services.sourceOf(toolset)
      const place = source ? { at: [...source.at, 'access'] } : { of: definition, at: ['access'] }
      host.report(new StartError('MH2724', text, place), 'warning')
    }
  }
}

function lintTools({ host, services, rules, access }: LintSubject, route: McpRoute, items: readonly CatalogItem[]) {
  // Tools on a restricted route need no rule.
  if (route.authorize !== undefined && route.authorize !== true) return
  const report = (of: object) =>
    host.log.warn(
      { code: 'MH2725', route: route.path, ...of },
      'A destructive tool, or a toolset with unknown tools, has no rule and no access',
    )
  for (const item of items) {
    const isDestructive = item.kind === 'tools' && item.definition.annotations?.destructiveHint === true
    if (isDestructive && access.get(route)?.ruleOf(item).sources.length === 0) report({ tool: item.key })
  }
  if (route.authorize === true) return
  for (const toolset of route.toolsets) {
    const isUnknown = services.sourceOf(toolset) !== undefined && services.itemsIn(toolset).length === 0
    const isRuled = () => rules.list.some(({ kind, glob }) => kind === 'tools' && matchesGlob(glob, `${toolset}_`))
    if (isUnknown && !isRuled()) report({ toolset })
  }
}

function lintShadow({ host, rules, access }: LintSubject, items: Items) {
  const shadowed = new Set<string>()
  for (const rule of rules.list) if (rule.mode === 'shadow') shadowed.add(rule.name)
  for (const [route, list] of items) {
    for (const item of list) {
      for (const { name, mode } of access.get(route)?.ruleOf(item).sources ?? []) {
        if (mode === 'shadow' && name.startsWith('its access')) shadowed.add(`"${item.key}": ${name}`)
      }
    }
  }
  if (shadowed.size > 0 || rules.mode === 'shadow') {
    host.log.warn(
      { code: 'MH2726', rules: [...shadowed] },
      'shadow mode: these rules are evaluated and logged, but NOT enforced',
    )
  }
}

export function lint(subject: LintSubject): void {
  const { host, services } = subject
  const items = new Map<McpRoute, readonly CatalogItem[]>(host.routes.map(route => [route, services.itemsOf(route)]))
  const reachable = reachableItems(host)
  lintRules(subject, reachable)
  if (host.config.purpose === 'inspect') lintPolicies(subject, reachable)
  for (const [route, list] of items) {
    lintScopes(subject, route, list)
    lintTools(subject, route, list)
  }
  // Items that only `configureSession` can add are checked on every route.
  const routed = new Set([...items.values()].flat())
  const added = (route: Route) => services.reachableItemsOf(route).filter(item => !routed.has(item))
  const all = new Map([...items].map(([route, list]) => [route, [...list, ...added(route)]]))
  if (host.config.purpose === 'inspect') lintHierarchy(subject, all)
  lintAccess(subject, all)
  lintShadow(subject, items)
}
