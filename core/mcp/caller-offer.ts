// What one caller is offered, as its calls ask for it. For offer.ts, which knows how it comes to be.
import type { User } from '../kernel/user.ts'
import type { Offer, RequestFacts } from './call.ts'
import type { OfferedConfig } from './offered-config.ts'
import type { View, ViewRequest } from './view.ts'

/** How a route's offers come to their views. */
export interface Way {
  readonly config: OfferedConfig
  /** Throws where what `configureSession` chose cannot be served together: it may have been until a reload. */
  cut(request: ViewRequest, user: User | undefined): View
  /** What a view is cut from after a reload: what the route serves now, with what `configureSession` chose. */
  renew(request: ViewRequest, params: RequestFacts['params']): ViewRequest
  choiceOf(request: ViewRequest): Offer['choice']
}

/** Claims that differ from token to token of one grant. */
const OF_ONE_TOKEN: ReadonlySet<string> = new Set(['exp', 'iat', 'jti', 'nbf'])

const grantedTo = ({ clientId, scopes, roles, claims }: User): string =>
  JSON.stringify([clientId, scopes, roles, Object.entries(claims).filter(([name]) => !OF_ONE_TOKEN.has(name))])

/** Whether two tokens of a user grant the same: client, scopes, roles and claims, but for the times and the id of the token. */
const sameGrant = (one: User | undefined, other: User | undefined): boolean =>
  one === other || (one !== undefined && other !== undefined && grantedTo(one) === grantedTo(other))

/** Makes the offer again, for its user with another token. */
export type Rechoose = (user: User | undefined) => Promise<Offer>

/** What of an offer asks the functions of the config. */
export interface OfferHooks {
  readonly runs: Offer['run'] | undefined
  readonly rechoose: Rechoose | undefined
}

type OfferFacts = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip' | 'sessionId'>

/** What a caller is offered, by the config as it was when its request was made, and as a reload makes it. */
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
  /** The user of the last token that grants the same: it is compared once. */
  #alike: User | undefined
  /** The offer with another token that was made last. */
  #other: { readonly user: User | undefined; readonly offer: Promise<Offer> } | undefined

  /** `reloads`: as many as there were when the request was made. `hooks`: what the config's functions are, where it has them. */
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
    // Requests that come at once ask once.
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
