// Computes the minimum scopes of a challenge. Without them clients request all of `scopes_supported` (MCP "Scope Selection").

import { type Report, StartError } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import { type Catalog, type CatalogItem, EVERYWHERE } from '../mcp/definitions/catalog.ts'
import { didYouMean } from '../mcp/nearest.ts'
import type { AccessServices, LeastScopes } from '../mcp/routes/access-decider.ts'
import type { CompiledRoute } from '../mcp/routes/routes.ts'

export interface LeastScopesParts {
  readonly routes: readonly CompiledRoute[]
  readonly catalog: Catalog
  readonly contributed: (route: CompiledRoute) => readonly string[]
  readonly slot: AccessServices['slot']
}

export function itemsOn(
  { catalog, contributed }: Pick<LeastScopesParts, 'catalog' | 'contributed'>,
  route: CompiledRoute,
  toolsets: readonly string[] = route.toolsets,
): readonly CatalogItem[] {
  const names = new Set([...toolsets, ...contributed(route), EVERYWHERE])
  return [...new Set([...names].flatMap(name => catalog.items(name)))]
}

function scopesOfAll(facts: LeastScopesParts, route: CompiledRoute, toolsets: readonly string[]): readonly string[] {
  const anonymous = facts.slot('access', route).audienceOf(undefined, route)
  const needed = itemsOn(facts, route, toolsets).map(item => anonymous.denialOf(item)?.scopes ?? [])
  const [first = [], ...others] = needed
  return first.filter(scope => others.every(scopes => scopes.includes(scope)))
}

/** Returns the route's `challengeScope`, or the scopes that all items require. Cached until definitions change. */
export function createLeastScopes(facts: LeastScopesParts): LeastScopes {
  const { catalog } = facts
  const found = new Map<string, readonly string[]>()
  let generation = catalog.generation()

  return ({ path, challengeScopes }, params) => {
    const route = facts.routes.find(compiled => compiled.path === path)
    const toolsets = route?.toolsetsFor(params)
    if (!route || !toolsets || challengeScopes.length > 0) return challengeScopes
    if (generation !== catalog.generation()) found.clear()
    generation = catalog.generation()
    return getOrCreate(found, JSON.stringify([path, toolsets]), () => scopesOfAll(facts, route, toolsets))
  }
}

/** Warns about required scopes that the metadata does not list, if no policy plugin checks them. */
export function warnUnsupportedScopes(facts: LeastScopesParts, report: Report): void {
  for (const route of facts.routes) {
    const { path, authorize, challengeScopes } = route
    const access = facts.slot('access', route)
    const supported = facts.slot('protectedResource', route).scopesOf(route)
    if (!supported || access.by !== undefined) continue
    const needed = authorize === undefined ? [] : (access.authorize(authorize, undefined, route)?.scopes ?? [])
    for (const [key, scopes] of [['authorize', needed] as const, ['challengeScope', challengeScopes] as const]) {
      for (const scope of scopes.filter(scope => !supported.includes(scope))) {
        const why = `scope "${scope}" is missing from scopesSupported, so clients do not request it`
        report(
          new StartError('MH1219', `${why}; ${didYouMean(scope, supported)}`, { at: ['routes', path, key] }),
          'warning',
        )
      }
    }
  }
}
