// Where oidc-provider keeps sessions, logins under way, grants, codes and refresh tokens: in records. What it finds and then
// uses up it must be alone in using, on whatever node; a refresh token works a little longer, for refreshes side by side.
import { errors } from 'oidc-provider'
import type { ClientMetadata, RegisteredClients } from '../clients/registered-clients.ts'
import { grantedAt, type Place, pendingAt, type Records } from '../records.ts'

interface Payload {
  readonly uid?: string
  readonly accountId?: string
  readonly grantId?: string
  consumed?: number | true
}

export interface AdapterSettings {
  readonly records: Records
  readonly clients: RegisteredClients
  /** Milliseconds that a refresh token still works once it was used. */
  readonly refreshGrace: number
  /** Hears that what was used up came again: a stolen code, or token. */
  readonly replayed: (model: string, grantId: string | undefined) => void
}

/** How long it is known of a refresh token that it was used, milliseconds. Later it is none. */
const USED_TTL = 24 * 3_600_000
/** Between two writes, milliseconds. */
const MARGIN = 60_000
/** Without one of its own, milliseconds. */
const DEFAULT_TTL = 3_600_000

/** Whatever a stranger can make us keep. */
const PENDING = new Set(['Interaction', 'ReplayDetection', 'PushedAuthorizationRequest'])

/** Used once, a refresh token but for its grace. */
const USED_ONCE = new Set(['AuthorizationCode', 'RefreshToken'])

const uidAt = (uid: string) => grantedAt('session of', uid)

const seconds = (time: number) => Math.floor(time / 1_000)

/** What oidc-provider keeps of one model. */
class Adapter {
  readonly #settings: AdapterSettings
  readonly #model: string

  constructor(settings: AdapterSettings, model: string) {
    this.#settings = settings
    this.#model = model
  }

  #at(id: string): Place {
    return PENDING.has(this.#model) ? pendingAt(this.#model, id) : grantedAt(this.#model, id)
  }

  #usedAt(id: string): Place {
    return grantedAt(`used ${this.#model}`, id)
  }

  #read(id: string): Promise<Payload | undefined> {
    return this.#settings.records.read<Payload>(this.#at(id))
  }

  /** When it was used; undefined where it was not, and for a refresh token while that makes no difference. */
  async #used(id: string): Promise<number | undefined> {
    const { records, refreshGrace } = this.#settings
    const used = await records.read<number>(this.#usedAt(id))
    const isInGrace = used !== undefined && this.#model === 'RefreshToken' && Date.now() < used + refreshGrace
    return isInGrace ? undefined : used
  }

  async find(id: string): Promise<Payload | ClientMetadata | undefined> {
    const { records, clients, replayed } = this.#settings
    if (this.#model === 'Client') return clients.find(id)
    const payload = await this.#read(id)
    if (this.#model === 'Session') return payload ?? records.read<Payload>(pendingAt(this.#model, id))
    if (!payload || !USED_ONCE.has(this.#model)) return payload
    const used = await this.#used(id)
    if (used === undefined) return payload
    replayed(this.#model, payload.grantId)
    return { ...payload, consumed: seconds(used) }
  }

  async upsert(id: string, payload: Payload, expiresIn?: number): Promise<void> {
    const { records } = this.#settings
    // What a client registered with is in its id.
    if (this.#model === 'Client') return
    const ttl = expiresIn === undefined ? DEFAULT_TTL : expiresIn * 1_000
    if (this.#model === 'Session') return this.#keepSession(id, payload, ttl)
    await records.write(this.#at(id), payload, ttl)
  }

  async #keepSession(id: string, payload: Payload, ttl: number): Promise<void> {
    const { records } = this.#settings
    if (payload.accountId === undefined) {
      // Whoever shows a cookie of a session that has ended has another one made, and is nobody yet; or nobody any more.
      await records.write(pendingAt(this.#model, id), payload, ttl)
      return records.delete(this.#at(id))
    }
    await records.write(this.#at(id), payload, ttl)
    if (payload.uid !== undefined) await records.write(uidAt(payload.uid), id, ttl)
  }

  async findByUid(uid: string) {
    const id = await this.#settings.records.read<string>(uidAt(uid))
    return id === undefined ? undefined : this.find(id)
  }

  async findByUserCode() {
    return undefined
  }

  async consume(id: string): Promise<void> {
    const { records, refreshGrace, replayed } = this.#settings
    if (this.#model === 'RefreshToken') {
      // A client refreshes every few minutes: what it used is not kept for as long as what it has. That comes first, and ends
      // first: no token outlives the knowledge that it was used, wherever a node dies.
      const payload = await this.#read(id)
      if (payload) await records.write(this.#at(id), payload, USED_TTL)
    }
    if (await records.add(this.#usedAt(id), Date.now(), USED_TTL + refreshGrace + MARGIN)) return
    if (this.#model === 'RefreshToken' && (await this.#used(id)) === undefined) return
    // Somebody else was first, after both had found it unused: nobody knows who is the thief.
    const payload = await this.#read(id)
    replayed(this.#model, payload?.grantId)
    if (payload?.grantId !== undefined) await records.delete(grantedAt('Grant', payload.grantId))
    throw new errors.InvalidGrant('it was used already')
  }

  async destroy(id: string): Promise<void> {
    const places = this.#model === 'Session' ? [this.#at(id), pendingAt(this.#model, id)] : [this.#at(id)]
    await this.#settings.records.delete(...places)
  }

  /** Nothing is good for anything without its grant, which oidc-provider destroys beside this. */
  async revokeByGrantId() {}
}

/** The adapter of the bridge, as oidc-provider asks for it: by the name of a model. */
export const createAdapter = (settings: AdapterSettings) => (model: string) => new Adapter(settings, model)
