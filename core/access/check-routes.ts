// What a route asks for and the plugins of the config do not give it: told before anything is served. For core/host.ts.
import { type Path, type Report, StartError } from '../http/start-error.ts'
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

/** Warns of policies on routes where no plugin authenticates callers: no caller can meet them. */
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
  const why = `no plugin authenticates callers on ${where}, so no caller can meet a policy there`
  report(new StartError(`${why}; switch on ${suggest('user')}`, { at: ['plugins', name] }), 'warning')
}

/** Warns of toolsets that no route serves. */
export function warnUnserved(
  routes: readonly CompiledRoute[],
  toolsets: ReadonlyMap<string, readonly unknown[]>,
  report: Report,
): void {
  const served = new Set(routes.flatMap(route => route.toolsets))
  for (const [name, { length }] of toolsets) {
    if (length === 0 || served.has(name)) continue
    report(new StartError('no route serves this toolset; add it to a route', { at: ['toolsets', name] }), 'warning')
  }
}

export interface ServingFacts {
  readonly routes: readonly CompiledRoute[]
  readonly provides: Provides
  /** Whether a plugin has an endpoint on a route. */
  readonly isServed: (route: Route) => boolean
  readonly isDescribed: (route: Route) => boolean
  readonly suggest: SuggestPlugin
  readonly report: Report
}

/** Warns of routes where clients get no answer at all, and of those where they cannot find out who gives out tokens. */
export function checkServed({ routes, provides, isServed, isDescribed, suggest, report }: ServingFacts): void {
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
