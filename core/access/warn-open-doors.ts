// Warns at startup of tools that are probably open by mistake.
import { isDeepStrictEqual } from 'node:util'
import { type Report, StartError } from '../http/errors.ts'
import { isLoopback } from '../http/guard.ts'
import type { ResolvedHttp } from '../http/http-settings.ts'
import type { KernelHost } from '../kernel/kernel-host.ts'
import type { Logger } from '../kernel/log.ts'
import type { AccessServices } from '../mcp/access-decider.ts'
import { type Catalog, describeToolset } from '../mcp/catalog.ts'
import type { CompiledRoute } from '../mcp/routes.ts'

/**
 * Warns of each parameter that can name toolsets which the route does not list: those that no route lists, as they may be
 * meant for `addToolset` only, and those that another route guards in another way. `warnOpenDoors` has the open routes.
 */
function warnOpenParameters(routes: readonly CompiledRoute[], report: Report): void {
  for (const { path, authorize, choice } of routes) {
    if (!choice.isOpen) continue
    const fix = `list those that it can name: { param: '${choice.parameter}', of: [...] }; or mark others \`internal: true\``
    const warn = (why: string) => {
      const at = ['routes', path, 'toolsets']
      report(new StartError(`":${choice.parameter}" reaches ${why}; ${fix}`, { at }), 'warning')
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

export interface OpenDoorFacts {
  readonly routes: readonly CompiledRoute[]
  readonly catalog: Pick<Catalog, 'items'>
  readonly slot: AccessServices['slot']
  readonly http: Pick<ResolvedHttp, 'host' | 'publicUrl' | 'allowedHosts'>
  readonly purpose: KernelHost['purpose']
  readonly log: Logger
  readonly report: Report
}

/** Warns if other machines can call tools without a token, and no host name is checked. By DNS rebinding, every website could call them. */
function warnOpenHost({ routes, catalog, slot, http, purpose, log }: OpenDoorFacts): void {
  if (purpose === 'stdio' || isLoopback(http.host) || http.publicUrl !== undefined || http.allowedHosts.length > 0)
    return
  const open = routes.filter(route => {
    if (route.authorize !== undefined) return false
    const anybody = slot('access', route).audienceOf(undefined, route)
    return route.toolsets.some(toolset => catalog.items(toolset).some(item => !anybody.denialOf(item)))
  })
  if (open.length === 0) return
  const fix =
    'set `authorize` on the routes, or http.publicUrl or http.allowedHosts; 127.0.0.1 is reached by this machine only'
  const fields = { host: http.host, routes: open.map(({ path }) => path), fix }
  log.warn(fields, 'every machine in the network can call tools without a token, by any host name')
}

/** Warns of each open route that serves items of a protected route. Items with their own `access` or rule are excluded. */
export function warnOpenDoors(facts: OpenDoorFacts): void {
  warnOpenHost(facts)
  const { routes, catalog, slot, log, report } = facts
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
      const fix = 'give the open route `authorize` too, take the toolset off it, or give the items `access`'
      const fields = { route: open.path, guardedBy, item: item.key, fix }
      log.warn(fields, `an open route serves ${describeToolset(toolset)}, which another route guards`)
    }
  }
}
