// Evaluates access to a path without a request, for `mcp-host explain`.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa from 'koa'
import compose from 'koa-compose'
import type { HostError } from '../http/errors.ts'
import { readTarget } from '../http/request-target.ts'
import { authenticationSteps, authenticatorsOn } from '../kernel/authenticators.ts'
import type { HostContext, RequestState } from '../kernel/endpoint.ts'
import { createPathTable, type Matched } from '../kernel/path-table.ts'
import { type KernelRegistrations, registeredOn } from '../kernel/set-up.ts'
import type { User } from '../kernel/user.ts'
import type { ToolLimits } from '../mcp/calls/tool-limits.ts'
import type { CatalogItem } from '../mcp/definitions/catalog.ts'
import type { McpRegistrations } from '../mcp/mcp-plugin-host.ts'
import type { AccessServices, Denial } from '../mcp/routes/access-decider.ts'
import type { CompiledRoute } from '../mcp/routes/routes.ts'
import { denialOnRoute, refuseAccess } from './authorize.ts'
import { itemsOn, type LeastScopesParts } from './least-scopes.ts'

export type InspectedAddress = NonNullable<ReturnType<typeof inspectAddress>>

interface InspectedParts extends LeastScopesParts, Pick<AccessServices, 'leastScopes' | 'challengesOn'> {
  readonly registrations: Pick<KernelRegistrations, 'authenticators'>
  readonly mcp: Pick<McpRegistrations, 'explained' | 'unlisted'>
  readonly limits: Pick<ToolLimits, 'describe'>
}

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
  const { registrations, mcp, slot, limits } = parts
  const toolsets = route.toolsetsFor(params)
  if (!toolsets) return undefined
  const access = slot('access', route)
  const authenticators = authenticatorsOn(registrations, route)
  const steps = authenticationSteps(authenticators, error => error)
  return {
    route,
    params,
    /** The configured toolsets; `configureSession` can change them. */
    toolsets,
    items: itemsOn(parts, route, toolsets),
    authenticators: authenticators.map(({ plugin }) => plugin),
    /** Identifies the user of an Authorization header. Rejects like a request with that header. */
    async identify(authorization: string | undefined): Promise<User | undefined> {
      const ctx = contextOf(path, authorization, { path, hosts: [], route, params })
      await compose<HostContext>(steps as compose.Middleware<HostContext>[])(ctx)
      return ctx.state.user
    },
    authorize: (user: User | undefined): Denial | undefined =>
      route.authorize === undefined ? undefined : access.authorize(route.authorize, user, route),
    denialOf: (item: CatalogItem, user: User | undefined): Denial | undefined =>
      denialOnRoute(access.audienceOf(user, route).denialOf(item), user, route, access),
    /** True if plugins hide the item from lists. A text is the reason that its calls fail. */
    unlistedBy: ({ kind, key }: CatalogItem): boolean | string => {
      const found = kind === 'tools' ? registeredOn(mcp.unlisted, route).map(isHidden => isHidden(key, route)) : []
      return found.find(one => typeof one === 'string') ?? found.includes(true)
    },
    explain: (item: CatalogItem, user: User | undefined): readonly string[] =>
      access.explain?.(item, user, route) ?? [],
    explainPlugins: (item?: CatalogItem): readonly string[] => [
      ...(item ? limits.describe(item).map(text => `limits: ${text}`) : []),
      ...mcp.explained
        .filter(({ instance }) => instance.routes.includes(route))
        .flatMap(({ instance, value }) => value(item, route).map(text => `${instance.name}: ${text}`)),
    ],
    refusal(denial: Denial, user: User | undefined): HostError {
      return refuseAccess(denial, { route, params, user }, parts)
    },
  }
}

export function inspectAddress(target: string, parts: InspectedParts) {
  const table = createPathTable<CompiledRoute>()
  for (const route of parts.routes) table.add(route.path, route)
  const { path } = readTarget(target) ?? {}
  const found = path === undefined ? undefined : table.match(path)
  return path !== undefined && found ? inspect(path, found, parts) : undefined
}
