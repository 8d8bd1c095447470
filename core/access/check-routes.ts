// Checks at startup that the plugins of each route provide the required features, and warns about probable mistakes.
import { isDeepStrictEqual } from 'node:util'
import { type Path, type Report, StartError } from '../http/errors.ts'
import { isLoopback, type ResolvedHttp } from '../http/guard.ts'
import { covers, fill, formsOf, parsePattern, rankOf } from '../http/path-pattern.ts'
import { authenticatorsOn } from '../kernel/authenticators.ts'
import type { Logger } from '../kernel/log.ts'
import type { ServedEndpoint } from '../kernel/pipeline.ts'
import { type Provides, providesTo, type SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import { type KernelRegistrations, registeredOn } from '../kernel/set-up.ts'
import { describeToolset } from '../mcp/definitions/catalog.ts'
import type { CompiledRoute } from '../mcp/routes/routes.ts'
import type { LeastScopesParts } from './least-scopes.ts'

export function checkPlugins(routes: readonly Route[], provides: Provides, suggest: SuggestPlugin, report: Report) {
  const fail = (code: string, why: string, ...at: Path) => report(new StartError(code, why, { at: ['routes', ...at] }))
  for (const route of routes) {
    const { path, authorize, cors } = route
    if (authorize !== undefined && !provides('authorize', route)) {
      fail('MH1211', `no plugin of this route enforces it; enable ${suggest('authorize')}`, path, 'authorize')
    } else if (typeof authorize === 'string' && !provides('policy', route)) {
      fail(
        'MH1212',
        `no plugin of this route defines the policy "${authorize}"; enable ` +
          `${suggest('policy')}, or for a scope or a role write { scope: '${authorize}' } or { role: '${authorize}' }`,
        ...[path, 'authorize'],
      )
    }
    if (cors !== undefined && !provides('cors', route)) {
      fail('MH1213', `no plugin of this route defines "${cors}"; enable ${suggest('cors')}`, path, 'cors')
    }
  }
}

/** A plugin that authenticates callers can forget to enforce `authorize`: the route would be open. */
export function checkAuthorizeHooks(routes: readonly Route[], parts: KernelRegistrations, report: Report): void {
  const enforcers = parts.middleware.authorize.filter(({ instance }) => providesTo(instance.plugin, 'authorize'))
  for (const route of routes) {
    const [first] = authenticatorsOn(parts, route)
    if (route.authorize === undefined || !first || registeredOn(enforcers, route).length > 0) continue
    const why = `plugins.${first.plugin} does not enforce it: call host.authorize(authorizeRoute(host)) in its setup`
    report(new StartError('MH1211', why, { at: ['routes', route.path, 'authorize'] }))
  }
}

function checkCategories(routes: readonly CompiledRoute[], endpoints: readonly ServedEndpoint[], report: Report): void {
  const fixed = endpoints.flatMap(({ path, plugin }) =>
    formsOf(parsePattern(path, path)).map(form => ({ ...form, path, plugin })),
  )
  for (const { path, choice } of routes) {
    const [own] = formsOf(parsePattern(path, path))
    if (choice.parameter === undefined || !own) continue
    for (const name of choice.categories) {
      const address = fill(own.pattern, { [choice.parameter]: name })
      const other = fixed.find(
        ({ pattern }) => covers(pattern, address) && rankOf(pattern).localeCompare(rankOf(own.pattern)) < 0,
      )
      if (!other) continue
      const place = `/${address.map(({ text }) => text).join('/')}`
      const why = `the toolset "${name}" would be at ${place}, which plugins.${other.plugin} serves`
      const fix = 'rename the toolset, or change one of the paths'
      report(
        new StartError('MH1205', `${why}; ${fix}`, {
          at: ['routes', path, 'toolsets'],
          also: [{ at: ['toolsets', name] }],
        }),
      )
    }
  }
}

export function warnUnmetPolicies(
  routes: readonly Route[],
  provides: Provides,
  suggest: SuggestPlugin,
  report: Report,
): void {
  const unmet = routes.filter(route => provides('policy', route) && !provides('user', route))
  if (unmet.length === 0) return
  const [name = ''] = provides.by('policy')
  const where = unmet.map(({ path }) => path).join(', ')
  const why = `no plugin authenticates callers on ${where}, so no caller can satisfy a policy there`
  report(new StartError('MH1214', `${why}; enable ${suggest('user')}`, { at: ['plugins', name] }), 'warning')
}

export function warnUnserved(
  routes: readonly CompiledRoute[],
  toolsets: ReadonlyMap<string, readonly unknown[]>,
  provided: ReadonlyMap<string, { readonly at: Path }>,
  isInternal: (toolset: string) => boolean,
  report: Report,
): void {
  const served = new Set(routes.flatMap(route => route.toolsets))
  const warn = (at: Path) =>
    report(new StartError('MH1208', 'no route serves this toolset; add it to a route', { at }), 'warning')
  for (const [name, { length }] of toolsets) {
    if (length > 0 && !served.has(name) && !isInternal(name)) warn(['toolsets', name])
  }
  for (const [name, { at }] of provided) if (!served.has(name)) warn(at)
}

export function checkServed(
  routes: readonly CompiledRoute[],
  endpoints: readonly ServedEndpoint[],
  isDescribed: (route: Route) => boolean,
  provides: Provides,
  suggest: SuggestPlugin,
  report: Report,
): void {
  const isServed = (route: Route) => endpoints.some(place => place.route === route && place.kind === 'R')
  const warn = (code: string, why: string, ...at: Path) =>
    report(new StartError(code, why, { at: ['routes', ...at] }), 'warning')
  checkCategories(routes, endpoints, report)
  for (const route of routes) {
    const { path, authorize } = route
    if (!isServed(route) && route.revisions.length === 0) {
      warn('MH1209', `nothing serves this route; enable ${suggest('transport')}`, path)
    }
    if (authorize !== undefined && provides('user', route) && !isDescribed(route)) {
      const why = 'clients need a token but cannot discover the authorization server, so they cannot log in'
      warn('MH1215', `${why}; enable ${suggest('protectedResource')}`, path, 'authorize')
    }
  }
}

function warnOpenParameters(routes: readonly CompiledRoute[], report: Report): void {
  for (const { path, authorize, choice } of routes) {
    if (!choice.isOpen) continue
    const fix = `list those that it can name: { param: '${choice.parameter}', of: [...] }; or mark others \`internal: true\``
    const warn = (why: string) => {
      const at = ['routes', path, 'toolsets']
      report(new StartError('MH1216', `":${choice.parameter}" reaches ${why}; ${fix}`, { at }), 'warning')
    }
    const unlisted = choice.categories.filter(name => !choice.listed.includes(name))
    if (unlisted.length > 0) warn(`toolsets that no route lists: ${unlisted.join(', ')}`)
    if (authorize === undefined) continue
    for (const name of choice.listed) {
      const isOther = (route: CompiledRoute) =>
        !route.choice.isOpen && route.toolsets.includes(name) && route.authorize !== undefined
      const guard = routes.find(route => isOther(route) && !isDeepStrictEqual(route.authorize, authorize))
      if (guard) warn(`toolset "${name}", which routes['${guard.path}'] guards with another \`authorize\``)
    }
  }
}

/** Warns if other machines can call tools without a token or Host check: DNS rebinding would let any site call them. */
export function warnOpenHost({ routes, catalog, slot }: LeastScopesParts, http: ResolvedHttp, log: Logger): void {
  if (isLoopback(http.host) || http.publicUrl !== undefined || http.allowedHosts.length > 0) return
  const open = routes.filter(route => {
    if (route.authorize !== undefined) return false
    const anonymous = slot('access', route).audienceOf(undefined, route)
    return route.toolsets.some(toolset => catalog.items(toolset).some(item => !anonymous.denialOf(item)))
  })
  if (open.length === 0) return
  const fix =
    'set `authorize` on the routes, or http.publicUrl or http.allowedHosts, or let only this machine connect (127.0.0.1)'
  const fields = { host: http.host, routes: open.map(({ path }) => path), fix }
  log.warn(
    { code: 'MH1217', ...fields },
    'every machine on the network can call tools without a token, and every host name is accepted',
  )
}

/** Warns about open routes that serve items of a protected route. Items with their own `access` or rule are excluded. */
export function warnUnprotected({ routes, catalog, slot }: LeastScopesParts, log: Logger, report: Report): void {
  warnOpenParameters(routes, report)
  const guards = routes.filter(({ authorize }) => authorize !== undefined)
  for (const open of routes) {
    if (open.authorize !== undefined) continue
    const anybody = slot('access', open).audienceOf(undefined, open)
    for (const toolset of open.toolsets) {
      const guardedBy = guards.filter(({ toolsets }) => toolsets.includes(toolset)).map(({ path }) => path)
      if (guardedBy.length === 0) continue
      const item = catalog.items(toolset).find(candidate => !anybody.denialOf(candidate))
      if (!item) continue
      const fix = 'add `authorize` to the open route, remove the toolset from it, or add `access` to the items'
      const fields = { route: open.path, guardedBy, item: item.key, fix }
      log.warn(
        { code: 'MH1218', ...fields },
        `an open route serves ${describeToolset(toolset)}, which another route guards`,
      )
    }
  }
}
