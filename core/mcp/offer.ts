// What a request's caller sees: the route's toolsets, changed by `configureSession`, cut to a view. A route without
// `configureSession` has its few views ready; a request only picks one.

import { HostError, type Report, StartError } from '../http/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { User } from '../kernel/user.ts'
import type { AccessDecider, Audience } from './access-decider.ts'
import type { AdmitCaller, Offer, RequestFacts } from './call.ts'
import { CallerOffer, type Way } from './caller-offer.ts'
import type { ChosenCombinations } from './chosen-combinations.ts'
import { addressCombinations, type CombinationSettings, checkAccess, checkCombination } from './combinations.ts'
import type { ConfigureSession, RunSession, SessionRequest } from './configure-session.ts'
import { isObject } from './is-object.ts'
import type { OfferedConfig } from './offered-config.ts'
import type { JsonObject } from './protocol.ts'
import type { CompiledRoute } from './routes.ts'
import { type Chosen, createSessionOptions, toolsetsOf } from './session-options.ts'
import type { View, ViewRequest } from './view.ts'

export interface OfferSettings extends CombinationSettings {
  readonly log: Logger
  readonly viewFor: (request: ViewRequest, audience: Audience) => View
  /** Decides what a caller may use on a route. */
  readonly accessOn: (route: CompiledRoute) => AccessDecider
  /** Asked of callers whom no HTTP request brought through `admit`. */
  readonly admit: AdmitCaller
  /** True where what is listed may differ between callers of this route. */
  readonly varies: (route: CompiledRoute) => boolean
  /** What `capabilities.extensions` says on this route. */
  readonly extensions: (route: CompiledRoute) => Readonly<Record<string, JsonObject>>
  /** What plugins leave out of the lists of this route; the same function every time. */
  readonly unlists: (route: CompiledRoute) => ViewRequest['unlists']
}

/** What `createOffers` needs beside what a view is cut from. */
interface OffersSettings extends OfferSettings {
  readonly chosen: ChosenCombinations
}

type Choice = Pick<ViewRequest, 'toolsets'> & Partial<ViewRequest>

/** What a view of this route is cut from, for this choice of toolsets. */
function requestView(settings: OfferSettings, route: CompiledRoute, choice: Choice): ViewRequest {
  const { config, varies, contributed, extensions: extensionsOn } = settings
  const toolsets = [...choice.toolsets, ...contributed(route)]
  const cacheScope = varies(route) ? 'private' : 'public'
  const extensions = { ...extensionsOn(route), ...choice.capabilities?.extensions }
  const capabilities = { ...choice.capabilities, ...(Object.keys(extensions).length > 0 && { extensions }) }
  return {
    extra: [],
    server: config.now.server,
    ...choice,
    capabilities,
    toolsets,
    cacheScope,
    keys: settings.keys(route),
    unlists: settings.unlists(route),
  }
}

/** The view of a route. Throws a StartError where it has an item whose `access` nobody would decide. */
function cutView(settings: OfferSettings, route: CompiledRoute, request: ViewRequest, user?: User): View {
  const view = settings.viewFor(request, settings.accessOn(route).audienceOf(user, route))
  checkAccess(settings, route, view.restricted)
  return view
}

/** What a route serves with one choice of toolsets, as it is before anybody calls, to those who show no token. */
export const plainView = (settings: OfferSettings, route: CompiledRoute, toolsets: readonly string[]): View =>
  cutView(settings, route, requestView(settings, route, { toolsets }))

const sessionRequest = ({ headers, user, route, params, ip }: RequestFacts): SessionRequest => ({
  headers,
  user,
  route: { path: route.path, params },
  ip,
})

/** How often `configureSession` is asked again because a reload came in between. */
const MAX_AGAIN = 3
const NOTHING: readonly string[] = []

/** Makes offers: for one request, or for as long as a session lasts. */
export function createOffers(settings: OffersSettings) {
  const { config, catalog, admit, log, contributed } = settings

  /** Asks `configureSession` what one caller is offered. */
  async function choose(configureSession: ConfigureSession, base: readonly string[], facts: RequestFacts) {
    const route = facts.route as CompiledRoute
    const { options, chosen } = createSessionOptions({
      base,
      route: route.path,
      id: facts.sessionId,
      server: config.now.server,
      catalog,
      check: ({ toolsets, extra }) =>
        settings.chosen.check({ route, toolsets: [...toolsets, ...contributed(route)], extra }),
    })
    await configureSession(sessionRequest(facts), options, { signal: facts.signal() })
    if (!isObject(options.server) || typeof options.server.name !== 'string') {
      throw new TypeError('configureSession left a `server` without a name')
    }
    return chosen()
  }

  /** Those that `configureSession` had a say in. */
  const choices = new WeakMap<ViewRequest, Chosen>()
  function configured(chosen: Chosen, base: readonly string[], route: CompiledRoute): ViewRequest {
    const { extra, server, capabilities } = chosen
    const request = requestView(settings, route, { toolsets: toolsetsOf(base, chosen), extra, server, capabilities })
    choices.set(request, chosen)
    settings.chosen.note({ route, toolsets: request.toolsets, extra })
    return request
  }

  const told = new WeakSet<ViewRequest>()
  /** What a caller is refused with whose view cannot be cut. */
  function refusalOf(thrown: unknown, request: ViewRequest, route: CompiledRoute): unknown {
    if (!(thrown instanceof StartError) || !choices.has(request)) return thrown
    if (!told.has(request)) log.error({ err: thrown, route: route.path }, UNSERVABLE)
    told.add(request)
    const detail = 'what this server chose for its caller cannot be served together; its log says why'
    return new HostError('internal', { detail, cause: thrown })
  }

  // By the route first: a list of toolsets is the config's own, and two routes may have one list between them.
  let plain = new WeakMap<CompiledRoute, WeakMap<readonly string[], ViewRequest>>()
  let reloads = config.reloads

  function unchanged(toolsets: readonly string[], route: CompiledRoute): ViewRequest {
    if (reloads !== config.reloads) {
      plain = new WeakMap()
      reloads = config.reloads
    }
    const ofRoute = plain.get(route) ?? new WeakMap<readonly string[], ViewRequest>()
    plain.set(route, ofRoute)
    const request = ofRoute.get(toolsets) ?? requestView(settings, route, { toolsets })
    ofRoute.set(toolsets, request)
    return request
  }

  async function run(runSession: RunSession, facts: RequestFacts, body: () => Promise<void>, restored: boolean) {
    let running: Promise<void> | undefined
    const once = () => {
      running ??= body()
      // Whoever forgets to wait for it must not end the process.
      running.catch(() => undefined)
      return running
    }
    await runSession(sessionRequest(facts), { id: facts.sessionId, restored }, once, { signal: facts.signal() })
    if (!running) throw new TypeError('runSession returned without having called `run`')
    await running
  }

  const runIn =
    (runSession: RunSession, facts: RequestFacts): Offer['run'] =>
    (body, restored = false) =>
      run(runSession, facts, body, restored)

  // One a route: a hundred thousand idle sessions must not each have their own.
  const ways = new WeakMap<CompiledRoute, Way>()
  function wayOf(route: CompiledRoute): Way {
    const way = ways.get(route) ?? {
      config,
      cut(request, asker) {
        try {
          return cutView(settings, route, request, asker)
        } catch (error) {
          throw refusalOf(error, request, route)
        }
      },
      renew(request, params) {
        const base = route.toolsetsFor(params) ?? NOTHING
        const chosen = choices.get(request)
        return chosen ? configured(chosen, base, route) : unchanged(base, route)
      },
      choiceOf(request) {
        const chosen = choices.get(request)
        return chosen && { left: chosen.left, added: chosen.added }
      },
    }
    ways.set(route, way)
    return way
  }

  function baseOf({ route, params }: RequestFacts): readonly string[] {
    const base = (route as CompiledRoute).toolsetsFor(params)
    if (!base) throw new HostError('notFound', { detail: 'there is nothing at this address' })
    return base
  }

  /** By the config as it was when the request was made. */
  function offerOf(facts: RequestFacts, request: ViewRequest, { now, reloads: version }: OfferedConfig): Offer {
    const way = wayOf(facts.route as CompiledRoute)
    // Without these functions nothing of the request that opened the session is kept.
    const runs = now.runSession && runIn(now.runSession, facts)
    const isChosen = choices.has(request) && facts.sessionId !== undefined
    const rechoose = isChosen ? (user: User | undefined) => chooseOffer({ ...facts, user }) : undefined
    return new CallerOffer(facts, request, version, way, { runs, rechoose })
  }

  async function chooseOffer(facts: RequestFacts): Promise<Offer> {
    const route = facts.route as CompiledRoute
    for (let again = 0; ; again++) {
      const asked = { ...config }
      const base = baseOf(facts)
      const { configureSession } = asked.now
      const request = configureSession
        ? configured(await choose(configureSession, base, facts), base, route)
        : unchanged(base, route)
      if (asked.reloads === config.reloads || again === MAX_AGAIN) return offerOf(facts, request, asked)
    }
  }

  /**
   * Throws `notFound` where the address names no toolset, and as `admit` for a caller who was not admitted yet; or rejects so.
   * At once where the config has no `configureSession`.
   */
  return function makeOffer(facts: RequestFacts): Offer | Promise<Offer> {
    if (!facts.admitted) admit(facts)
    const { choice } = facts
    if (choice) {
      const chosen = { ...choice, extra: [], server: config.now.server, capabilities: {} }
      return offerOf(facts, configured(chosen, baseOf(facts), facts.route as CompiledRoute), config)
    }
    if (config.now.configureSession) return chooseOffer(facts)
    return offerOf(facts, unchanged(baseOf(facts), facts.route as CompiledRoute), config)
  }
}

const UNSERVABLE = 'what configureSession chose cannot be served: its callers are refused'

/** Checks what each address serves and builds its view, so that no request has to. */
export function prepareViews(routes: readonly CompiledRoute[], settings: OfferSettings, report: Report): void {
  for (const combination of addressCombinations(routes, settings.contributed)) {
    if (checkCombination(settings, combination, report)) plainView(settings, combination.route, combination.names)
  }
}
