// Who may do what at an address, decided by the very parts that decide it for a request, without one:
// for `mcp-host explain` (cli/explain.ts). Nothing listens.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa from 'koa'
import compose from 'koa-compose'
import type { HostContext, RequestState, Route } from '../kernel/define-plugin.ts'
import type { HostError } from '../kernel/errors.ts'
import { createPathTable, type Matched } from '../kernel/path-table.ts'
import { notesFor, type PluginNotes } from '../kernel/plugin-host.ts'
import { readTarget } from '../kernel/request-target.ts'
import type { CompiledRoute } from '../kernel/routes.ts'
import type { Slots } from '../kernel/slots.ts'
import type { Denial } from '../mcp/access-decider.ts'
import type { Catalog, CatalogItem } from '../mcp/catalog.ts'
import type { User } from '../mcp/define.ts'
import { denialOnRoute, refuseAccess } from './access.ts'
import { itemsOn, type LeastScopes } from './least-scopes.ts'

/** An address of the config, as a request's path names it. */
export interface InspectedAddress {
  readonly route: Route
  readonly params: Readonly<Record<string, string>>
  /** By the config; `configureSession` may change it. */
  readonly toolsets: readonly string[]
  readonly items: readonly CatalogItem[]
  /** False where no plugin finds out who calls. */
  readonly identifies: boolean
  /** Who a request with this Authorization header comes from. Rejects as the request would be refused. */
  identify(authorization: string | undefined): Promise<User | undefined>
  /** Why a caller may not use the route; undefined: it may. */
  authorize(user: User | undefined): Denial | undefined
  /** Why a caller may not use an item; undefined: it may. */
  denialOf(item: CatalogItem, user: User | undefined): Denial | undefined
  /** How that is decided, a line for each step. */
  explain(item: CatalogItem, user: User | undefined): readonly string[]
  /** The answer that a denied caller gets. */
  refusal(denial: Denial, user: User | undefined): HostError
}

export interface InspectedParts {
  readonly routes: readonly CompiledRoute[]
  readonly notes: PluginNotes
  readonly slots: Slots
  readonly catalog: Catalog
  readonly leastScopes: LeastScopes
}

/** A request that came over no connection. */
function contextOf(path: string, authorization: string | undefined, state: RequestState): HostContext {
  const req = new IncomingMessage(new Socket())
  req.method = 'POST'
  req.url = path
  req.headers = authorization === undefined ? {} : { authorization }
  const ctx = new Koa<RequestState>().createContext(req, new ServerResponse(req))
  ctx.state = state
  return ctx
}

function inspect(path: string, { target: route, params }: Matched<CompiledRoute>, parts: InspectedParts) {
  const { notes, slots } = parts
  const toolsets = route.toolsetsFor(params)
  if (!toolsets) return undefined
  const identifiers = notesFor(notes.middleware.identify, route)
  const address: InspectedAddress = {
    route,
    params,
    toolsets,
    items: itemsOn(parts, route, toolsets),
    identifies: identifiers.length > 0,
    async identify(authorization) {
      const ctx = contextOf(path, authorization, { path, route, params })
      await compose<HostContext>(identifiers as compose.Middleware<HostContext>[])(ctx)
      return ctx.state.user
    },
    authorize: user =>
      route.authorize === undefined ? undefined : slots.access.authorize(route.authorize, user, route),
    denialOf: (item, user) =>
      denialOnRoute(slots.access.audienceOf(user, route).denialOf(item), user, route, slots.access),
    explain: (item, user) => slots.access.explain?.(item, user, route) ?? [],
    refusal(denial, user) {
      const leastScopes = parts.leastScopes(route, params)
      return refuseAccess(denial, user, { route, params, resource: slots.protectedResource, leastScopes })
    },
  }
  return address
}

/** The address that a request's path names; undefined where nothing is served. */
export function inspectAddress(given: string, parts: InspectedParts): InspectedAddress | undefined {
  const table = createPathTable<CompiledRoute>()
  for (const route of parts.routes) table.add(route.path, route)
  const { path } = readTarget(given) ?? {}
  const found = path === undefined ? undefined : table.match(path)
  return path !== undefined && found ? inspect(path, found, parts) : undefined
}
