// What is served where: the endpoints that plugins registered, each with what acts before it. From the plugins' notes
// (core/kernel/set-up.ts) to the pipeline (core/kernel/pipeline.ts).
import type { CrossOrigin } from './endpoint.ts'
import { normalize } from './path-pattern.ts'
import { shapesOf } from './path-table.ts'
import { HOOK_POINTS, type Served } from './pipeline.ts'
import type { Route } from './route.ts'
import { type KernelNotes, notesFor } from './set-up.ts'

/** What acts before an endpoint of this route; nothing does where the endpoint is public. */
function actsOn(notes: KernelNotes, route: Route): Pick<Served, 'crossOrigin' | 'middleware'> {
  const policies = notesFor(notes.crossOrigin, route).map(policyOf => policyOf(route))
  return {
    crossOrigin: policies.find((policy): policy is CrossOrigin => policy !== undefined),
    middleware: HOOK_POINTS.flatMap(point => notesFor(notes.middleware[point], route)),
  }
}

const OPEN = { crossOrigin: undefined, middleware: [] } as const

function fixedEndpoints({ endpoints }: KernelNotes, routes: readonly Route[], fallback: boolean): Served[] {
  return endpoints
    .filter(({ value }) => (value.fallback ?? false) === fallback)
    .map(({ value: { path, endpoint, route } }) => ({
      path,
      endpoint,
      route: routes.find(compiled => compiled === route),
      ...OPEN,
    }))
}

/** Every address of the host. A fallback is left out where something else has its path. */
export function collectEndpoints(notes: KernelNotes, routes: readonly Route[]): Served[] {
  const served = fixedEndpoints(notes, routes, false)
  for (const route of routes) {
    const acts = actsOn(notes, route)
    for (const { suffix, define } of notesFor(notes.routeEndpoints, route)) {
      const endpoint = define(route)
      const path = suffix === '' ? route.path : `${route.path === '/' ? '' : normalize(route.path)}${suffix}`
      if (endpoint) served.push({ path, route, endpoint, ...(endpoint.public ? OPEN : acts) })
    }
  }
  const taken = new Set(served.flatMap(({ path }) => shapesOf(path)))
  for (const candidate of fixedEndpoints(notes, routes, true)) {
    const [whole = '', ...shortened] = shapesOf(candidate.path)
    if (taken.has(whole)) continue
    for (const shape of [whole, ...shortened]) taken.add(shape)
    served.push(candidate)
  }
  return served
}
