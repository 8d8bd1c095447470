// Storage of oidc-provider. Codes are single-use on all nodes; a used refresh token works in its grace period.
import Provider, { errors } from 'oidc-provider'
import type { ClientMetadata, RegisteredClients } from '../clients/client-rules.ts'
import { digest, grantedAt, type Place, pendingAt, type Records } from '../records.ts'

/** A refresh token and its replacements. After the grace period only one replacement remains usable. */
interface Branch {
  readonly replaced: string
  readonly by: string
  /** End of the grace period, milliseconds since the epoch. */
  readonly until: number
}

interface Fork {
  readonly chosen?: string
}

interface Payload {
  readonly branches?: readonly Branch[]
  readonly uid?: string
  readonly accountId?: string
  readonly grantId?: string
  consumed?: number | true
}

interface AdapterSettings {
  readonly records: Records
  readonly clients: RegisteredClients
  readonly now: () => number
  readonly refreshGrace: number
  readonly refreshToken: number
  /** Called for a reused code or refresh token, whose grant ends. */
  readonly replayed: (model: string, grantId: string | undefined, reason: string) => void
}

/** How long the use of a refresh token is stored, milliseconds. */
const USED_TTL = 24 * 3_600_000
const MARGIN = 60_000
const DEFAULT_TTL = 3_600_000

/** Models that an unauthenticated request can create. */
const PENDING = new Set(['Interaction', 'ReplayDetection', 'PushedAuthorizationRequest'])

/** A refresh token can be used again in its grace period. */
const USED_ONCE = new Set(['AuthorizationCode', 'RefreshToken'])

/** A client refreshes at most 60 times a minute. */
const MOST_BRANCHES = 100

const USED_AGAIN = 'it was used already'
const SECOND_BRANCH = 'another token that replaced the same one was used after the grace period'

const forkAt = (name: string) => grantedAt('fork', name)

const uidAt = (uid: string) => grantedAt('session of', uid)

const seconds = (time: number) => Math.floor(time / 1_000)

class Adapter {
  readonly #settings: AdapterSettings
  readonly #model: string
  readonly #branches = new WeakMap<object, readonly Branch[]>()

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

  async #used(id: string): Promise<number | undefined> {
    const { records, refreshGrace } = this.#settings
    const used = await records.read<number>(this.#usedAt(id))
    const isInGrace = used !== undefined && this.#model === 'RefreshToken' && this.#settings.now() < used + refreshGrace
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
    replayed(this.#model, payload.grantId, USED_AGAIN)
    return { ...payload, consumed: seconds(used) }
  }

  async upsert(id: string, payload: Payload, expiresIn?: number): Promise<void> {
    const { records } = this.#settings
    if (this.#model === 'Client') return
    const ttl = expiresIn === undefined ? DEFAULT_TTL : expiresIn * 1_000
    if (this.#model === 'Session') return this.#keepSession(id, payload, ttl)
    await records.write(this.#at(id), this.#withBranches(id, payload), ttl)
  }

  #withBranches(id: string, payload: Payload): Payload {
    const before = Provider.ctx && this.#branches.get(Provider.ctx)
    return before
      ? { ...payload, branches: before.map(branch => ({ ...branch, by: branch.by || digest(id) })) }
      : payload
  }

  async #keepSession(id: string, payload: Payload, ttl: number): Promise<void> {
    const { records } = this.#settings
    if (payload.accountId === undefined) {
      // A cookie of an ended session gets a new, anonymous session.
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
    const { records, refreshGrace } = this.#settings
    const isRefresh = this.#model === 'RefreshToken'
    const payload = isRefresh ? await this.#read(id) : undefined
    // Written first and expires first, so that no unused token outlives the record of its use, even after a crash.
    if (payload) await records.write(this.#at(id), payload, USED_TTL)
    const now = this.#settings.now()
    if (await records.add(this.#usedAt(id), now, USED_TTL + refreshGrace + MARGIN)) {
      if (payload) await this.#follow(id, payload, now + refreshGrace)
      return
    }
    const used = await records.read<number>(this.#usedAt(id))
    if (payload && used !== undefined && now < used + refreshGrace) {
      await records.add(forkAt(digest(id)), {}, this.#settings.refreshToken)
      return this.#follow(id, payload, used + refreshGrace)
    }
    // A concurrent request used it first; one of the two may be a thief.
    await this.#endGrant(payload ?? (await this.#read(id)), USED_AGAIN)
  }

  async #follow(id: string, payload: Payload, until: number): Promise<void> {
    const { branches = [] } = payload
    const now = this.#settings.now()
    for (const branch of branches)
      if (branch.until <= now && (await this.#isAbandoned(branch))) await this.#endGrant(payload, SECOND_BRANCH)
    const open = branches.filter(branch => branch.until > now).slice(0, MOST_BRANCHES)
    if (Provider.ctx) this.#branches.set(Provider.ctx, [...open, { replaced: digest(id), by: '', until }])
  }

  async #isAbandoned({ replaced, by }: Branch): Promise<boolean> {
    const { records, refreshToken } = this.#settings
    const fork = await records.read<Fork>(forkAt(replaced))
    if (!fork || fork.chosen === by) return false
    if (fork.chosen !== undefined) return true
    const chosen = await records.update<Fork>(forkAt(replaced), refreshToken, known =>
      known.chosen === undefined ? { chosen: by } : undefined,
    )
    return chosen === undefined && (await records.read<Fork>(forkAt(replaced)))?.chosen !== by
  }

  async #endGrant(payload: Payload | undefined, reason: string): Promise<never> {
    const { records, replayed } = this.#settings
    replayed(this.#model, payload?.grantId, reason)
    if (payload?.grantId !== undefined) await records.delete(grantedAt('Grant', payload.grantId))
    throw new errors.InvalidGrant(reason)
  }

  async destroy(id: string): Promise<void> {
    const places = this.#model === 'Session' ? [this.#at(id), pendingAt(this.#model, id)] : [this.#at(id)]
    await this.#settings.records.delete(...places)
  }

  /** oidc-provider also destroys the grant, which invalidates the rest. */
  async revokeByGrantId() {}
}

export const createAdapter = (settings: AdapterSettings) => (model: string) => new Adapter(settings, model)
