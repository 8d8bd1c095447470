// Storage of oidc-provider. Codes are single-use on all nodes; a used refresh token works in its grace period.
import Provider, { errors } from 'oidc-provider'
import { digest, grantedKey, pendingKey, type RecordKey, type Records } from '../../families/credentials/index.ts'
import type { ClientMetadata, RegisteredClients } from '../clients/client-rules.ts'

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
  /** Called when a code or refresh token is reused, which ends its grant. */
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

/** Maximum replacements of a refresh token. A client refreshes at most 60 times a minute. */
const MAX_BRANCHES = 100

const USED_AGAIN = 'it was already used'
const SECOND_BRANCH = 'another token that replaced the same one was used after the grace period'

const forkAt = (name: string) => grantedKey('fork', name)

const uidAt = (uid: string) => grantedKey('session of', uid)

export const createAdapter =
  ({ records, clients, now, refreshGrace, refreshToken, replayed }: AdapterSettings) =>
  (model: string) => {
    /** Pending replacements by request. */
    const pending = new WeakMap<object, readonly Branch[]>()
    function at(id: string): RecordKey {
      return PENDING.has(model) ? pendingKey(model, id) : grantedKey(model, id)
    }

    function usedAt(id: string): RecordKey {
      return grantedKey(`used ${model}`, id)
    }

    function read(id: string): Promise<Payload | undefined> {
      return records.read<Payload>(at(id))
    }

    async function findUse(id: string): Promise<number | undefined> {
      const used = await records.read<number>(usedAt(id))
      const isInGrace = used !== undefined && model === 'RefreshToken' && now() < used + refreshGrace
      return isInGrace ? undefined : used
    }

    async function find(id: string): Promise<Payload | ClientMetadata | undefined> {
      if (model === 'Client') return clients.find(id)
      const payload = await read(id)
      if (model === 'Session') return payload ?? records.read<Payload>(pendingKey(model, id))
      if (!payload || !USED_ONCE.has(model)) return payload
      const used = await findUse(id)
      if (used === undefined) return payload
      replayed(model, payload.grantId, USED_AGAIN)
      return { ...payload, consumed: Math.floor(used / 1_000) }
    }

    async function upsert(id: string, payload: Payload, expiresIn?: number): Promise<void> {
      if (model === 'Client') return
      const ttl = expiresIn === undefined ? DEFAULT_TTL : expiresIn * 1_000
      if (model === 'Session') return keepSession(id, payload, ttl)
      await records.write(at(id), withBranches(id, payload), ttl)
    }

    function withBranches(id: string, payload: Payload): Payload {
      const before = Provider.ctx && pending.get(Provider.ctx)
      return before
        ? { ...payload, branches: before.map(branch => ({ ...branch, by: branch.by || digest(id) })) }
        : payload
    }

    async function keepSession(id: string, payload: Payload, ttl: number): Promise<void> {
      if (payload.accountId === undefined) {
        // The cookie of an ended session gets a new, anonymous session.
        await records.write(pendingKey(model, id), payload, ttl)
        return records.delete(at(id))
      }
      await records.write(at(id), payload, ttl)
      if (payload.uid !== undefined) await records.write(uidAt(payload.uid), id, ttl)
    }

    async function findByUid(uid: string) {
      const id = await records.read<string>(uidAt(uid))
      return id === undefined ? undefined : find(id)
    }

    async function consume(id: string): Promise<void> {
      const isRefresh = model === 'RefreshToken'
      const payload = isRefresh ? await read(id) : undefined
      // The token is written first and expires first, so that it never outlives the record of its use, even after a
      // crash.
      if (payload) await records.write(at(id), payload, USED_TTL)
      const time = now()
      if (await records.add(usedAt(id), time, USED_TTL + refreshGrace + MARGIN)) {
        if (payload) await follow(id, payload, time + refreshGrace)
        return
      }
      const used = await records.read<number>(usedAt(id))
      if (payload && used !== undefined && time < used + refreshGrace) {
        await records.add(forkAt(digest(id)), {}, refreshToken)
        return follow(id, payload, used + refreshGrace)
      }
      // A concurrent request used the token first; one of the two is possibly a thief.
      await endGrant(payload ?? (await read(id)), USED_AGAIN)
    }

    async function follow(id: string, payload: Payload, until: number): Promise<void> {
      const { branches = [] } = payload
      const time = now()
      for (const branch of branches)
        if (branch.until <= time && (await isAbandoned(branch))) await endGrant(payload, SECOND_BRANCH)
      const open = branches.filter(branch => branch.until > time).slice(0, MAX_BRANCHES)
      if (Provider.ctx) pending.set(Provider.ctx, [...open, { replaced: digest(id), by: '', until }])
    }

    async function isAbandoned({ replaced, by }: Branch): Promise<boolean> {
      const fork = await records.read<Fork>(forkAt(replaced))
      if (!fork || fork.chosen === by) return false
      if (fork.chosen !== undefined) return true
      const chosen = await records.update<Fork>(forkAt(replaced), refreshToken, known =>
        known.chosen === undefined ? { chosen: by } : undefined,
      )
      return chosen === undefined && (await records.read<Fork>(forkAt(replaced)))?.chosen !== by
    }

    async function endGrant(payload: Payload | undefined, reason: string): Promise<never> {
      replayed(model, payload?.grantId, reason)
      if (payload?.grantId !== undefined) await records.delete(grantedKey('Grant', payload.grantId))
      throw new errors.InvalidGrant(reason)
    }

    async function destroy(id: string): Promise<void> {
      const places = model === 'Session' ? [at(id), pendingKey(model, id)] : [at(id)]
      await records.delete(...places)
    }

    return {
      ...{ find, upsert, findByUid, consume, destroy },
      findByUserCode: async () => undefined,
      /** oidc-provider also destroys the grant, which invalidates all other tokens. */
      revokeByGrantId: async () => undefined,
    }
  }
