// A toolset that one route guards and another serves to anybody is probably a mistake: told at every start, once the
// plugins are set up (core/host.ts).

import type { Logger } from '../kernel/log.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import { type Catalog, describeToolset } from '../mcp/catalog.ts'
import type { CompiledRoute } from '../mcp/routes.ts'

export interface OpenDoorFacts {
  readonly routes: readonly CompiledRoute[]
  readonly catalog: Pick<Catalog, 'items'>
  readonly slot: AccessServices['slot']
  readonly log: Logger
}

/** Warns of each open route with what it serves that another route guards. What has its own `access` or rule is kept. */
export function warnOpenDoors({ routes, catalog, slot, log }: OpenDoorFacts): void {
  const guards = routes.filter(({ authorize }) => authorize !== undefined)
  for (const open of routes) {
    if (open.authorize !== undefined) continue
    const anybody = slot('access', open).audienceOf(undefined, open)
    for (const toolset of open.toolsets) {
      const guardedBy = guards.filter(({ toolsets }) => toolsets.includes(toolset)).map(({ path }) => path)
      if (guardedBy.length === 0) continue
      const item = catalog.items(toolset).find(candidate => !anybody.denialOf(candidate))
      if (!item) continue
      const fix = 'give the open route `authorize` too, take the toolset off it, or give the items `access`'
      const fields = { route: open.path, guardedBy, item: item.key, fix }
      log.warn(fields, `an open route serves ${describeToolset(toolset)}, which another route guards`)
    }
  }
}
