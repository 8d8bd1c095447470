// Computes the view for a caller: the route's toolsets, changed by `configureSession`.

import { HostError, type Report, StartError } from '../../http/errors.ts'
import { getOrCreate } from '../../http/get-or-create.ts'
import type { Logger } from '../../kernel/log.ts'
import type { User } from '../../kernel/user.ts'
import type { AuthorizeCaller, Offer, RequestInfo, ToolsetChoice } from '../calls/call.ts'
import type { CatalogItem } from '../definitions/catalog.ts'
import { isObject } from '../wire/message.ts'
import type { JsonObject } from '../wire/protocol.ts'
import type { AccessDecider } from './access-decider.ts'
import {
  addressCombinations,
  type ChosenCombinations,
  type CombinationSettings,
  checkAccess,
  checkCombination,
} from './combinations.ts'
import type { LiveConfig, RunSession, SessionOptions, SessionRequest } from './configure-session.ts'
import type { CompiledRoute } from './routes.ts'
import type { View, ViewRequest, Views } from './view.ts'

interface OfferSettings extends CombinationSettings {
  readonly log: Logger
  readonly views: Views
  readonly accessOn: (route: CompiledRoute) => AccessDecider
  readonly authorize: AuthorizeCaller
  readonly varies: (route: CompiledRoute) => boolean
  readonly extensions: (route: CompiledRoute) => Readonly<Record<string, JsonObject>>
  readonly isHidden: (route: CompiledRoute) => ViewRequest['isHidden']
}

interface Chosen extends ToolsetChoice, Pick<ViewRequest, 'extra' | 'server' | 'capabilities'> {}

interface OfferRequest extends ViewRequest {
  readonly chosen?: Chosen
  readonly access: AccessDecider
}

function requestView(
  settings: OfferSettings,
  route: CompiledRoute,
  names: readonly string[],
  chosen?: Chosen,
): OfferRequest {
  const extensions = { ...settings.extensions(route), ...chosen?.capabilities.extensions }
  return {
    extra: chosen?.extra ?? [],
    server: chosen?.server ?? settings.config.now.server,
    capabilities: { ...chosen?.capabilities, ...(Object.keys(extensions).length > 0 && { extensions }) },
    toolsets: [...names, ...settings.contributed(route)],
    cacheScope: settings.varies(route) ? 'private' : 'public',
    keys: settings.keys(route),
    isHidden: settings.isHidden(route),
    ...(chosen && { chosen }),
    access: settings.accessOn(route),
  }
}

const findView = (settings: OfferSettings, route: CompiledRoute, request: OfferRequest, user?: User): View =>
  settings.views.find(request, request.access.audienceOf(user, route), ({ restricted }) =>
    checkAccess(settings, route, restricted),
  )

export const plainView = (settings: OfferSettings, route: CompiledRoute, toolsets: readonly string[]): View =>
  findView(settings, route, requestView(settings, route, toolsets))

export function prepareViews(routes: readonly CompiledRoute[], settings: OfferSettings, report: Report): void {
  for (const combination of addressCombinations(routes, settings.contributed)) {
    if (checkCombination(settings, combination, report)) plainView(settings, combination.route, combination.names)
  }
}

/** Later toolsets are included only if `configureSession` did not change the toolsets. */
function toolsetsOf(base: readonly string[], { left, added }: ToolsetChoice): string[] {
  const kept = left ? base.filter(name => left.includes(name)) : base
  return [...new Set([...kept, ...added])].sort()
}

const OF_ONE_TOKEN: ReadonlySet<string> = new Set(['exp', 'iat', 'jti', 'nbf'])

const grantOf = ({ clientId, scopes, roles, claims }: User): string =>
  JSON.stringify([clientId, scopes, roles, Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name))])

const sameGrant = (one: User | undefined, other: User | undefined): boolean =>
  one === other || (one !== undefined && other !== undefined && grantOf(one) === grantOf(other))

interface OfferMaker {
  readonly config: LiveConfig
  readonly views: Views
  createView(route: CompiledRoute, request: OfferRequest, user: User | undefined): View
  renew(route: CompiledRoute, request: OfferRequest, params: RequestInfo['params']): OfferRequest
}

interface OfferHooks {
  readonly runSession: Offer['run'] | undefined
  readonly reconfigure: ((user: User | undefined) => Promise<Offer>) | undefined
}

/** A class, because each idle session keeps an instance. */
class CallerOffer implements Offer {
  readonly route: CompiledRoute
  readonly params: Offer['params']
  readonly user: Offer['user']
  readonly ip: string
  readonly sessionId: string | undefined
  readonly hasRunSession: boolean
  readonly #maker: OfferMaker
  #request: OfferRequest
  #reloads: number
  readonly #hooks: OfferHooks
  #sameGrantUser: User | undefined
  #other: { readonly user: User | undefined; readonly offer: Promise<Offer> } | undefined

  constructor(facts: RequestInfo, request: OfferRequest, reloads: number, maker: OfferMaker, hooks: OfferHooks) {
    this.route = facts.route as CompiledRoute
    this.params = facts.params
    this.user = facts.user
    this.ip = facts.ip
    this.sessionId = facts.sessionId
    this.hasRunSession = hooks.runSession !== undefined
    this.#maker = maker
    this.#request = request
    this.#reloads = reloads
    this.#hooks = hooks
    this.#sameGrantUser = facts.user
  }

  #renew(): OfferRequest {
    this.#request = this.#maker.renew(this.route, this.#request, this.params)
    this.#reloads = this.#maker.config.reloads
    return this.#request
  }
  get #current(): OfferRequest {
    return this.#reloads === this.#maker.config.reloads ? this.#request : this.#renew()
  }
  get view() {
    return this.viewFor(this.user)
  }
  viewFor(user: User | undefined) {
    const { route } = this
    const maker = this.#maker
    const request = this.#reloads === maker.config.reloads ? this.#request : this.#renew()
    return maker.views.known(request, request.access.audienceOf(user, route)) ?? maker.createView(route, request, user)
  }
  withToken(user: User | undefined): Offer | Promise<Offer> {
    const { reconfigure } = this.#hooks
    if (!reconfigure || user === this.#sameGrantUser) return this
    if (sameGrant(user, this.user)) {
      this.#sameGrantUser = user
      return this
    }
    // Concurrent requests share one call of `configureSession`.
    if (!this.#other || !sameGrant(user, this.#other.user)) {
      const offer = reconfigure(user)
      this.#other = { user, offer }
      offer.catch(() => {
        if (this.#other?.offer === offer) this.#other = undefined
      })
    }
    return this.#other.offer
  }
  toolsets() {
    return this.#current.toolsets
  }
  get choice() {
    const { chosen } = this.#current
    return chosen && { left: chosen.left, added: chosen.added }
  }
  run(body: () => Promise<void>, restored?: boolean) {
    return this.#hooks.runSession ? this.#hooks.runSession(body, restored) : body()
  }
}

const NO_HOOKS: OfferHooks = { runSession: undefined, reconfigure: undefined }

const sessionRequest = ({ headers, user, route, params, ip }: RequestInfo): SessionRequest => ({
  headers,
  user,
  route: { path: route.path, params },
  ip,
})

async function runAround(runSession: RunSession, facts: RequestInfo, body: () => Promise<void>, restored: boolean) {
  let running: Promise<void> | undefined
  const once = () => {
    running ??= body()
    // Without this handler, a rejection that `runSession` does not await would end the process.
    running.catch(() => undefined)
    return running
  }
  await runSession(sessionRequest(facts), { id: facts.sessionId, restored }, once, { signal: facts.signal() })
  if (!running) throw new TypeError('runSession returned without having called `run`')
  await running
}

function baseOf({ route, params }: RequestInfo): readonly string[] {
  const base = route.toolsetsFor(params)
  if (!base) throw new HostError('notFound', { detail: 'this URL does not exist' })
  return base
}

const NO_TOOLSETS: readonly string[] = []
const MAX_RETRIES = 3

export function createOffers(settings: OfferSettings & { readonly chosen: ChosenCombinations }) {
  const { config, catalog, authorize, log, contributed, chosen: combinations } = settings

  async function choose(base: readonly string[], facts: RequestInfo): Promise<Chosen> {
    const { path } = facts.route
    const toolsets = new Set(base)
    const added = new Set<string>()
    let keepsAll = true
    let extra: readonly CatalogItem[] = []
    const check = (names: Iterable<string>, extra: readonly CatalogItem[]) => {
      const route = facts.route as CompiledRoute
      combinations.check({ route, toolsets: [...new Set(names), ...contributed(route)], extra })
    }
    const options: SessionOptions = {
      id: facts.sessionId,
      server: config.now.server,
      capabilities: {},
      get toolsets() {
        keepsAll = false
        return [...toolsets]
      },
      addToolset(name) {
        if (!catalog.has(name)) {
          const known = catalog.names().join(', ')
          throw new Error(`configureSession, route ${path}: there is no toolset "${name}"; available: ${known}`)
        }
        check([...toolsets, name], extra)
        toolsets.add(name)
        added.add(name)
      },
      removeToolset(name) {
        keepsAll = false
        toolsets.delete(name)
        added.delete(name)
      },
      add(...definitions) {
        const more = [...extra, ...definitions.map(definition => catalog.compile(definition, 'configureSession'))]
        check(toolsets, more)
        extra = more
      },
    }
    await config.now.configureSession?.(sessionRequest(facts), options, { signal: facts.signal() })
    const { server, capabilities } = options
    if (!isObject(server) || typeof server.name !== 'string') {
      throw new TypeError('configureSession left a `server` without a name')
    }
    return { left: keepsAll ? undefined : [...toolsets], added: [...added], extra, server, capabilities }
  }

  function configured(chosen: Chosen, base: readonly string[], route: CompiledRoute): OfferRequest {
    const request = requestView(settings, route, toolsetsOf(base, chosen), chosen)
    combinations.note({ route, toolsets: request.toolsets, extra: chosen.extra })
    return request
  }

  // Cached by route first, because two routes can share one toolset list.
  let plain = new WeakMap<CompiledRoute, WeakMap<readonly string[], OfferRequest>>()
  let reloads = config.reloads

  function unchanged(toolsets: readonly string[], route: CompiledRoute): OfferRequest {
    if (reloads !== config.reloads) {
      plain = new WeakMap()
      reloads = config.reloads
    }
    const ofRoute = getOrCreate(plain, route, () => new WeakMap())
    return getOrCreate(ofRoute, toolsets, () => requestView(settings, route, toolsets))
  }

  const logged = new WeakSet<OfferRequest>()
  const maker: OfferMaker = {
    config,
    views: settings.views,
    createView(route, request, user) {
      try {
        return findView(settings, route, request, user)
      } catch (cause) {
        if (!(cause instanceof StartError) || !request.chosen) throw cause
        if (!logged.has(request)) log.error({ code: 'MH1608', err: cause, route: route.path }, UNSERVABLE)
        logged.add(request)
        const detail = 'the tools and settings selected for this caller conflict; see the log of the server'
        throw new HostError('internal', { detail, cause })
      }
    },
    renew(route, { chosen }, params) {
      const base = route.toolsetsFor(params) ?? NO_TOOLSETS
      return chosen ? configured(chosen, base, route) : unchanged(base, route)
    },
  }

  function offerOf(facts: RequestInfo, request: OfferRequest, { now, reloads: version }: LiveConfig): Offer {
    const { runSession } = now
    const canReconfigure = request.chosen !== undefined && facts.sessionId !== undefined
    return new CallerOffer(facts, request, version, maker, {
      runSession: runSession && ((body, restored = false) => runAround(runSession, facts, body, restored)),
      reconfigure: canReconfigure ? user => chooseOffer({ ...facts, user }) : undefined,
    })
  }

  async function chooseOffer(facts: RequestInfo): Promise<Offer> {
    const route = facts.route as CompiledRoute
    for (let attempt = 0; ; attempt++) {
      const snapshot = { ...config }
      const base = baseOf(facts)
      const request = snapshot.now.configureSession
        ? configured(await choose(base, facts), base, route)
        : unchanged(base, route)
      if (snapshot.reloads === config.reloads || attempt === MAX_RETRIES) return offerOf(facts, request, snapshot)
    }
  }

  /** Creates the offer. Throws or rejects with `notFound`, or like `authorize`. Synchronous without `configureSession`. */
  return function makeOffer(facts: RequestInfo): Offer | Promise<Offer> {
    if (!facts.authorized) authorize(facts)
    const { choice } = facts
    const { configureSession, runSession } = config.now
    if (!choice && !configureSession && !runSession) {
      // The route is resolved only now, because a reload can happen while the body arrives.
      const request = unchanged(baseOf(facts), facts.route as CompiledRoute)
      return new CallerOffer(facts, request, config.reloads, maker, NO_HOOKS)
    }
    if (choice) {
      const chosen = { ...choice, extra: [], server: config.now.server, capabilities: {} }
      return offerOf(facts, configured(chosen, baseOf(facts), facts.route as CompiledRoute), config)
    }
    if (configureSession) return chooseOffer(facts)
    return offerOf(facts, unchanged(baseOf(facts), facts.route as CompiledRoute), config)
  }
}

const UNSERVABLE = 'configureSession returned an invalid selection: its callers are refused'
