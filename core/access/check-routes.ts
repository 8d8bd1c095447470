// What a route asks for and the plugins of the config do not give it: told before anything is served. For core/host.ts.

import { type Path, type Report, StartError } from '../http/errors.ts'
import { covers, fill, formsOf, parsePattern, rankOf } from '../http/path-pattern.ts'
import type { Provides, SuggestPlugin } from '../kernel/plugin-plan.ts'
import type { Route } from '../kernel/route.ts'
import type { CompiledRoute } from '../mcp/routes.ts'

/** Fails closed: what a route asks for, some plugin that acts there must decide; who calls, only one. */
export function checkConventions(routes: readonly Route[], provides: Provides, suggest: SuggestPlugin, report: Report) {
  const tell = (why: string, ...at: Path) => report(new StartError(why, { at: ['routes', ...at] }))
  for (const route of routes) {
    const { path, authorize, cors } = route
    const [first, second] = provides.by('user', route)
    if (second !== undefined) {
      const fix = 'switch one of them off on this route; for several issuers, one plugin may have an option'
      tell(`both ${first} and ${second} find out who calls; ${fix}`, path)
    }
    if (authorize !== undefined && !provides('authorize', route)) {
      tell(`no plugin of this route can decide it; switch on ${suggest('authorize')}`, path, 'authorize')
    } else if (typeof authorize === 'string' && !provides('policy', route)) {
      tell(
        `no plugin of this route knows the policy "${authorize}"; switch on ` +
          `${suggest('policy')}, or for a scope or a role write { scope: '${authorize}' } or { role: '${authorize}' }`,
        ...[path, 'authorize'],
      )
    }
    if (cors !== undefined && !provides('cors', route)) {
      tell(`no plugin of this route knows "${cors}"; switch on ${suggest('cors')}`, path, 'cors')
    }
  }
}

/** Where an endpoint is. */
interface EndpointPlace {
  readonly path: string
  readonly by: string
}

/** Reports a toolset that a parameter names and whose path another endpoint has. */
function checkCategories(routes: readonly CompiledRoute[], endpoints: readonly EndpointPlace[], report: Report): void {
  const fixed = endpoints.flatMap(({ path, by }) =>
    formsOf(parsePattern(path, path)).map(form => ({ ...form, path, by })),
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
      const why = `the toolset "${name}" would be at ${place}, which plugins.${other.by} serves`
      const fix = 'rename the toolset, or change one of the paths'
      report(new StartError(`${why}; ${fix}`, { at: ['routes', path, 'toolsets'], also: [{ at: ['toolsets', name] }] }))
    }
  }
}

/** Warns about policies on routes where no plugin authenticates callers: no caller can satisfy them. */
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
  report(new StartError(`${why}; switch on ${suggest('user')}`, { at: ['plugins', name] }), 'warning')
}

/** Warns about toolsets that no route serves, except those with `internal: true`. */
export function warnUnserved(
  routes: readonly CompiledRoute[],
  toolsets: ReadonlyMap<string, readonly unknown[]>,
  isInternal: (toolset: string) => boolean,
  report: Report,
): void {
  const served = new Set(routes.flatMap(route => route.toolsets))
  for (const [name, { length }] of toolsets) {
    if (length === 0 || served.has(name) || isInternal(name)) continue
    report(new StartError('no route serves this toolset; add it to a route', { at: ['toolsets', name] }), 'warning')
  }
}

export interface ServingFacts {
  readonly routes: readonly CompiledRoute[]
  readonly provides: Provides
  readonly endpoints: readonly EndpointPlace[]
  /** Whether a plugin has an endpoint on a route. */
  readonly isServed: (route: Route) => boolean
  readonly isDescribed: (route: Route) => boolean
  readonly suggest: SuggestPlugin
  readonly report: Report
}

/**
 * Reports toolsets whose path an endpoint has. Warns of routes where clients get no answer at all, and of those where they
 * cannot find out who gives out tokens.
 */
export function checkServed({
  routes,
  provides,
  endpoints,
  isServed,
  isDescribed,
  suggest,
  report,
}: ServingFacts): void {
  checkCategories(routes, endpoints, report)
  for (const route of routes) {
    const at = ['routes', route.path]
    if (!isServed(route) && route.revisions.length === 0) {
      report(new StartError(`nothing serves this route; switch on ${suggest('transport')}`, { at }), 'warning')
    }
    if (route.authorize !== undefined && provides('user', route) && !isDescribed(route)) {
      const why = 'clients are asked for a token and not told who gives it out, so that nobody can log in by themselves'
      report(
        new StartError(`${why}; switch on ${suggest('protectedResource')}`, { at: [...at, 'authorize'] }),
        'warning',
      )
    }
  }
}
