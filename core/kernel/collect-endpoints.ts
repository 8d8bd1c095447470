// Collects the endpoints and apps that plugins registered, each with its middleware.
import { type Report, reporting, StartError, stopAtFirst } from '../http/errors.ts'
import { formsOf, normalize, type Pattern, parsePattern, reaches, shapeOf } from '../http/path-pattern.ts'
import { type AddChallenge, authenticationSteps, authenticatorsOn } from './authenticators.ts'
import type { CrossOrigin, Endpoint } from './endpoint.ts'
import { HOOK_POINTS } from './order.ts'
import { shapesOf } from './path-table.ts'
import type { Place, Served } from './pipeline.ts'
import type { Route } from './route.ts'
import { type KernelNotes, notesFor } from './set-up.ts'
import { serveMounted } from './write-errors.ts'

function hooksAt(notes: KernelNotes, route: Route | undefined): Place['hooks'] {
  const at = (point: (typeof HOOK_POINTS)[number]) =>
    route
      ? notesFor(notes.middleware[point], route)
      : notes.middleware[point].filter(({ instance }) => instance.general).map(({ value }) => value)
  return Object.fromEntries(HOOK_POINTS.map(point => [point, at(point)])) as unknown as Place['hooks']
}

function policyOf(notes: KernelNotes, route: Route): CrossOrigin | undefined {
  const policies = notesFor(notes.cors, route).map(find => find(route))
  return policies.find((policy): policy is CrossOrigin => policy !== undefined)
}

const kindOf = ({ public: open = false }: Pick<Endpoint, 'public'>) => (open ? 'P' : 'F')

function fixedEndpoints(notes: KernelNotes, routes: readonly Route[], fallback: boolean): Served[] {
  return notes.endpoints
    .filter(({ value }) => (value.fallback ?? false) === fallback)
    .map(({ instance, value: { path, endpoint, route: place } }) => {
      const route = routes.find(compiled => compiled === place)
      const { name: plugin, at } = instance
      return { ...endpoint, path, route, plugin, at, kind: kindOf(endpoint), hooks: hooksAt(notes, route) }
    })
}

function routeEndpoints(notes: KernelNotes, route: Route, addChallenge: AddChallenge): Served[] {
  const hooks = hooksAt(notes, route)
  const authenticate = authenticationSteps(authenticatorsOn(notes, route), addChallenge)
  const policy = policyOf(notes, route)
  return notes.routeEndpoints
    .filter(({ instance }) => instance.routes.includes(route))
    .flatMap(({ instance, value: { suffix, define } }): Served[] => {
      const endpoint = define(route)
      if (!endpoint) return []
      const path = suffix === '' ? route.path : `${route.path === '/' ? '' : normalize(route.path)}${suffix}`
      const found = { ...endpoint, path, route, plugin: instance.name, at: instance.at, hooks }
      if (endpoint.public) return [{ ...found, kind: 'P' }]
      const cors = endpoint.cors ?? policy?.middleware
      return [{ ...found, kind: 'R', authenticate, cors, allowsOrigin: policy?.allows }]
    })
}

function checkMount(mount: Served, place: Pattern, others: readonly Served[], routes: readonly Route[]) {
  const fail = (what: string) =>
    new StartError('MH1207', `plugins.${mount.plugin}: mount('${mount.path}') ${what}`, { exitCode: 2 })
  if (place.some(({ parameter }) => parameter !== undefined))
    throw fail('has a parameter; an app is mounted at a fixed path')
  const meets = (path: string) => formsOf(parsePattern(path, path)).some(({ pattern }) => reaches(place, pattern))
  const route = routes.find(({ path }) => meets(path))
  if (route) throw fail(`would hide paths of routes['${route.path}']; choose another path`)
  const isWithin = ({ path, matchesSubpaths }: Served) =>
    (matchesSubpaths ?? false) && reaches(parsePattern(path, path), place)
  const foreign = others.filter(({ plugin }) => plugin !== mount.plugin)
  const taken = foreign.find(({ path }) => meets(path))
  if (taken) throw fail(`would take ${taken.path}, which plugins.${taken.plugin} serves; choose another path`)
  const outer = foreign.find(isWithin)
  if (outer) throw fail(`is below ${outer.path}, where plugins.${outer.plugin} has mounted an app; choose another path`)
}

function mountedApps(
  notes: KernelNotes,
  others: readonly Served[],
  routes: readonly Route[],
  report: Report,
): Served[] {
  const mounts: Served[] = []
  for (const { instance, value } of notes.mounts) {
    const { path, settings } = value
    const place = parsePattern(path, `plugins.${instance.name}: mount('${path}')`)
    const { name: plugin, at } = instance
    const hooks = hooksAt(notes, undefined)
    const app = serveMounted(shapeOf(place), value.app)
    const kind = kindOf(settings)
    const mount: Served = { path, matchesSubpaths: true, plugin, at, kind, cors: settings.cors, hooks, app }
    const tell: Report = clash => report(clash.orAt(instance.at))
    reporting(tell, () => checkMount(mount, place, [...others, ...mounts], routes))
    mounts.push(mount)
  }
  return mounts
}

/** Redirects browsers at `/` to the first open endpoint with a page. Protected endpoints are not named. */
function frontPage(served: readonly Served[]): Place['page'] {
  const front = served.find(({ page, route }) => page && route && !route.authorize && !route.path.includes(':'))?.route
  if (!front) return undefined
  return ctx => {
    ctx.set('Cache-Control', 'no-store')
    ctx.redirect(new URL(front.url({})).pathname)
  }
}

export interface Places {
  readonly served: readonly Served[]
  readonly notFoundPlace: Place
}

/** Collects all endpoints. A fallback is omitted if its path is taken. `addChallenge`: adds challenges to a 401. */
export function collectEndpoints(
  notes: KernelNotes,
  routes: readonly Route[],
  addChallenge: AddChallenge,
  report = stopAtFirst,
): Places {
  const served = [
    ...fixedEndpoints(notes, routes, false),
    ...routes.flatMap(route => routeEndpoints(notes, route, addChallenge)),
  ]
  served.push(...mountedApps(notes, served, routes, report))
  const taken = new Set(served.flatMap(({ path }) => shapesOf(path)))
  for (const candidate of fixedEndpoints(notes, routes, true)) {
    const [whole = '', ...shortened] = shapesOf(candidate.path)
    const isMounted = served.some(
      ({ matchesSubpaths, path }) =>
        matchesSubpaths && reaches(parsePattern(path, path), parsePattern(candidate.path, path)),
    )
    if (taken.has(whole) || isMounted) continue
    for (const shape of [whole, ...shortened]) taken.add(shape)
    served.push(candidate)
  }
  const page = frontPage(served)
  return { served, notFoundPlace: { kind: 'N', hooks: hooksAt(notes, undefined), ...(page && { page }) } }
}
