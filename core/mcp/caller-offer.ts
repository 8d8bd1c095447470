// What one caller is offered, as its calls ask for it. For offer.ts, which knows how it comes to be.
import type { User } from '../kernel/user.ts'
import type { Offer, RequestFacts } from './call.ts'
import type { OfferedConfig } from './offered-config.ts'
import type { View, ViewRequest } from './view.ts'

/** How the offers of a route get their views. */
export interface Way {
  readonly config: OfferedConfig
  /** Throws if the items chosen by `configureSession` conflict, which can happen after a reload. */
  cut(request: ViewRequest, user: User | undefined): View
  /** The view request after a reload: the route's current toolsets with the choice of `configureSession`. */
  renew(request: ViewRequest, params: RequestFacts['params']): ViewRequest
  choiceOf(request: ViewRequest): Offer['choice']
}

/** Claims that differ between tokens of one grant. */
const OF_ONE_TOKEN: ReadonlySet<string> = new Set(['exp', 'iat', 'jti', 'nbf'])

const grantedTo = ({ clientId, scopes, roles, claims }: User): string =>
  JSON.stringify([clientId, scopes, roles, Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name))])

/** Whether two tokens of a user have the same client, scopes, roles and claims, apart from times and token id. */
const sameGrant = (one: User | undefined, other: User | undefined): boolean =>
  one === other || (one !== undefined && other !== undefined && grantedTo(one) === grantedTo(other))

/** Makes the offer again, for its user with another token. */
export type Rechoose = (user: User | undefined) => Promise<Offer>

/** The config functions that an offer calls. */
export interface OfferHooks {
  readonly runs: Offer['run'] | undefined
  readonly rechoose: Rechoose | undefined
}

type OfferFacts = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip' | 'sessionId'>

/** The offer for a caller, by the config at the time of the request, updated by reloads. */
export class CallerOffer implements Offer {
  readonly route: Offer['route']
  readonly params: Offer['params']
  readonly user: Offer['user']
  readonly ip: string
  readonly sessionId: string | undefined
  readonly #way: Way
  #request: ViewRequest
  #reloads: number
  readonly #runs: Offer['run'] | undefined
  readonly #rechoose: Rechoose | undefined
  /** The user of the last token with the same grant, so that each token is compared once. */
  #alike: User | undefined
  /** The last offer for another token. */
  #other: { readonly user: User | undefined; readonly offer: Promise<Offer> } | undefined

  /** `reloads`: number of reloads when the request was made. `hooks`: the config functions, if configured. */
  constructor(facts: OfferFacts, request: ViewRequest, reloads: number, way: Way, hooks: OfferHooks) {
    this.route = facts.route
    this.params = facts.params
    this.user = facts.user
    this.ip = facts.ip
    this.sessionId = facts.sessionId
    this.#way = way
    this.#request = request
    this.#reloads = reloads
    this.#runs = hooks.runs
    this.#rechoose = hooks.rechoose
    this.#alike = facts.user
  }

  #now(): ViewRequest {
    if (this.#reloads !== this.#way.config.reloads) {
      this.#request = this.#way.renew(this.#request, this.params)
      this.#reloads = this.#way.config.reloads
    }
    return this.#request
  }
  get view() {
    return this.#way.cut(this.#now(), this.user)
  }
  viewFor(user: User | undefined) {
    return this.#way.cut(this.#now(), user)
  }
  withToken(user: User | undefined): Offer | Promise<Offer> {
    if (!this.#rechoose || user === this.#alike) return this
    if (sameGrant(user, this.user)) {
      this.#alike = user
      return this
    }
    // Concurrent requests share one call of `configureSession`.
    if (!this.#other || !sameGrant(user, this.#other.user)) {
      const offer = this.#rechoose(user)
      this.#other = { user, offer }
      offer.catch(() => {
        if (this.#other?.offer === offer) this.#other = undefined
      })
    }
    return this.#other.offer
  }
  toolsets() {
    return this.#now().toolsets
  }
  get choice() {
    return this.#way.choiceOf(this.#now())
  }
  get spansRun() {
    return this.#runs !== undefined
  }
  run(body: () => Promise<void>, restored?: boolean) {
    return this.#runs ? this.#runs(body, restored) : body()
  }
}
