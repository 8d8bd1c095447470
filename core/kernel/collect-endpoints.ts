// Collects the endpoints and apps that plugins registered, each with its middleware.
import { type Report, StartError, stopAtFirst, tryReport } from '../http/errors.ts'
import { formsOf, isPrefixOf, normalize, type Pattern, parsePattern, shapeOf } from '../http/path-pattern.ts'
import { type AddChallenge, authenticationSteps, authenticatorsOn } from './authenticators.ts'
import type { CrossOrigin, Endpoint } from './endpoint.ts'
import { HOOK_POINTS } from './order.ts'
import { shapesOf } from './path-table.ts'
import type { PipelineEndpoint, ServedEndpoint } from './pipeline.ts'
import type { Route } from './route.ts'
import { type KernelRegistrations, registeredOn } from './set-up.ts'
import { serveMounted } from './write-errors.ts'

function hooksAt(registrations: KernelRegistrations, route: Route | undefined): PipelineEndpoint['hooks'] {
  const at = (point: (typeof HOOK_POINTS)[number]) =>
    route
      ? registeredOn(registrations.middleware[point], route)
      : registrations.middleware[point].filter(({ instance }) => instance.general).map(({ value }) => value)
  return Object.fromEntries(HOOK_POINTS.map(point => [point, at(point)])) as unknown as PipelineEndpoint['hooks']
}

function policyOf(registrations: KernelRegistrations, route: Route): CrossOrigin | undefined {
  const policies = registeredOn(registrations.cors, route).map(find => find(route))
  return policies.find((policy): policy is CrossOrigin => policy !== undefined)
}

const kindOf = ({ public: open = false }: Pick<Endpoint, 'public'>) => (open ? 'P' : 'F')

function fixedEndpoints(
  registrations: KernelRegistrations,
  routes: readonly Route[],
  fallback: boolean,
): ServedEndpoint[] {
  return registrations.endpoints
    .filter(({ value }) => (value.fallback ?? false) === fallback)
    .map(({ instance, value: { path, endpoint, route: configured } }) => {
      const route = routes.find(compiled => compiled === configured)
      const { name: plugin, at } = instance
      return { ...endpoint, path, route, plugin, at, kind: kindOf(endpoint), hooks: hooksAt(registrations, route) }
    })
}

function routeEndpoints(
  registrations: KernelRegistrations,
  route: Route,
  addChallenge: AddChallenge,
): ServedEndpoint[] {
  const hooks = hooksAt(registrations, route)
  const authenticate = authenticationSteps(authenticatorsOn(registrations, route), addChallenge)
  const policy = policyOf(registrations, route)
  return registrations.routeEndpoints
    .filter(({ instance }) => instance.routes.includes(route))
    .flatMap(({ instance, value: { suffix, define } }): ServedEndpoint[] => {
      const endpoint = define(route)
      if (!endpoint) return []
      const path = suffix === '' ? route.path : `${route.path === '/' ? '' : normalize(route.path)}${suffix}`
      const base = { ...endpoint, path, route, plugin: instance.name, at: instance.at, hooks }
      if (endpoint.public) return [{ ...base, kind: 'P' }]
      const cors = endpoint.cors ?? policy?.middleware
      return [{ ...base, kind: 'R', authenticate, cors, allowsOrigin: policy?.allows }]
    })
}

function checkMount(
  mount: ServedEndpoint,
  pattern: Pattern,
  others: readonly ServedEndpoint[],
  routes: readonly Route[],
) {
  const fail = (what: string) =>
    new StartError('MH1207', `plugins.${mount.plugin}: mount('${mount.path}') ${what}`, { exitCode: 2 })
  if (pattern.some(({ parameter }) => parameter !== undefined))
    throw fail('has a parameter; an app is mounted at a fixed path')
  const overlaps = (path: string) => formsOf(parsePattern(path, path)).some(form => isPrefixOf(pattern, form.pattern))
  const route = routes.find(({ path }) => overlaps(path))
  if (route) throw fail(`would hide paths of routes['${route.path}']; choose another path`)
  const isWithin = ({ path, matchesSubpaths }: ServedEndpoint) =>
    (matchesSubpaths ?? false) && isPrefixOf(parsePattern(path, path), pattern)
  const foreign = others.filter(({ plugin }) => plugin !== mount.plugin)
  const taken = foreign.find(({ path }) => overlaps(path))
  if (taken) throw fail(`would take ${taken.path}, which plugins.${taken.plugin} serves; choose another path`)
  const outer = foreign.find(isWithin)
  if (outer) throw fail(`is below ${outer.path}, where plugins.${outer.plugin} has mounted an app; choose another path`)
}

function mountedApps(
  registrations: KernelRegistrations,
  others: readonly ServedEndpoint[],
  routes: readonly Route[],
  report: Report,
): ServedEndpoint[] {
  const mounts: ServedEndpoint[] = []
  for (const { instance, value } of registrations.mounts) {
    const { path, settings } = value
    const pattern = parsePattern(path, `plugins.${instance.name}: mount('${path}')`)
    const { name: plugin, at } = instance
    const hooks = hooksAt(registrations, undefined)
    const app = serveMounted(shapeOf(pattern), value.app)
    const kind = kindOf(settings)
    const mount: ServedEndpoint = { path, matchesSubpaths: true, plugin, at, kind, cors: settings.cors, hooks, app }
    const reportAt: Report = clash => report(clash.locatedAt(instance.at))
    tryReport(reportAt, () => checkMount(mount, pattern, [...others, ...mounts], routes))
    mounts.push(mount)
  }
  return mounts
}

/** Redirects browsers at `/` to the first open endpoint with a page. Protected endpoints are not named. */
function findFrontPage(served: readonly ServedEndpoint[]): PipelineEndpoint['page'] {
  const front = served.find(({ page, route }) => page && route && !route.authorize && !route.path.includes(':'))?.route
  if (!front) return undefined
  return ctx => {
    ctx.set('Cache-Control', 'no-store')
    ctx.redirect(new URL(front.url({})).pathname)
  }
}

/** Collects all endpoints. A fallback is omitted if its path is taken. `addChallenge`: adds challenges to a 401. */
export function collectEndpoints(
  registrations: KernelRegistrations,
  routes: readonly Route[],
  addChallenge: AddChallenge,
  report = stopAtFirst,
) {
  const served = [
    ...fixedEndpoints(registrations, routes, false),
    ...routes.flatMap(route => routeEndpoints(registrations, route, addChallenge)),
  ]
  served.push(...mountedApps(registrations, served, routes, report))
  const taken = new Set(served.flatMap(({ path }) => shapesOf(path)))
  for (const candidate of fixedEndpoints(registrations, routes, true)) {
    const [whole = '', ...shortened] = shapesOf(candidate.path)
    const isMounted = served.some(
      ({ matchesSubpaths, path }) =>
        matchesSubpaths && isPrefixOf(parsePattern(path, path), parsePattern(candidate.path, path)),
    )
    if (taken.has(whole) || isMounted) continue
    for (const shape of [whole, ...shortened]) taken.add(shape)
    served.push(candidate)
  }
  const page = findFrontPage(served)
  const notFound: PipelineEndpoint = { kind: 'N', hooks: hooksAt(registrations, undefined), ...(page && { page }) }
  return { served, notFound }
}
