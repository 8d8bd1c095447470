// Where oidc-provider keeps sessions, logins under way, grants, codes and refresh tokens: in records. What it finds and then
// uses up it must be alone in using, on whatever node; a refresh token works a little longer, for refreshes side by side.
import { errors } from 'oidc-provider'
import type { RegisteredClients } from '../clients/registered-clients.ts'
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

const seconds = (time: number) => Math.floor(time / 1_000)

/** The adapter of the bridge, as oidc-provider asks for it: by the name of a model. */
export function createAdapter({ records, clients, refreshGrace, replayed }: AdapterSettings) {
  return (model: string) => {
    const at = (id: string): Place => (PENDING.has(model) ? pendingAt(model, id) : grantedAt(model, id))
    const usedAt = (id: string) => grantedAt(`used ${model}`, id)
    const uidAt = (uid: string) => grantedAt('session of', uid)
    const canBeUsed = model === 'AuthorizationCode' || model === 'RefreshToken'

    async function find(id: string): Promise<Payload | undefined> {
      if (model === 'Client') return clients.find(id)
      if (model === 'Session') return (await records.read<Payload>(at(id))) ?? records.read(pendingAt(model, id))
      const payload = await records.read<Payload>(at(id))
      if (!payload || !canBeUsed) return payload
      const used = await records.read<number>(usedAt(id))
      if (used === undefined) return payload
      if (model === 'RefreshToken' && Date.now() < used + refreshGrace) return payload
      replayed(model, payload.grantId)
      return { ...payload, consumed: seconds(used) }
    }

    return {
      find,
      async upsert(id: string, payload: Payload, expiresIn?: number) {
        // What a client registered with is in its id.
        if (model === 'Client') return
        const ttl = expiresIn === undefined ? DEFAULT_TTL : expiresIn * 1_000
        // Whoever shows a cookie of a session that has ended has another one made, and is nobody yet.
        const isNobody = model === 'Session' && payload.accountId === undefined
        await records.write(isNobody ? pendingAt(model, id) : at(id), payload, ttl)
        // Who it was of before is no longer.
        if (isNobody) return records.delete(at(id))
        if (model === 'Session' && payload.uid !== undefined) await records.write(uidAt(payload.uid), id, ttl)
      },
      async findByUid(uid: string) {
        const id = await records.read<string>(uidAt(uid))
        return id === undefined ? undefined : find(id)
      },
      async findByUserCode() {
        return undefined
      },
      async consume(id: string) {
        if (model === 'RefreshToken') {
          // A client refreshes every few minutes: what it used is not kept for as long as what it has. That comes first, and
          // ends first: no token outlives the knowledge that it was used, wherever a node dies.
          const payload = await records.read<Payload>(at(id))
          if (payload) await records.write(at(id), payload, USED_TTL)
        }
        if (await records.add(usedAt(id), Date.now(), USED_TTL + refreshGrace + MARGIN)) return
        if (model === 'RefreshToken') {
          const used = await records.read<number>(usedAt(id))
          if (used !== undefined && Date.now() < used + refreshGrace) return
        }
        // Somebody else was first, after both had found it unused: nobody knows who is the thief.
        const payload = await records.read<Payload>(at(id))
        replayed(model, payload?.grantId)
        if (payload?.grantId !== undefined) await records.delete(grantedAt('Grant', payload.grantId))
        throw new errors.InvalidGrant('it was used already')
      },
      async destroy(id: string) {
        await records.delete(at(id), ...(model === 'Session' ? [pendingAt(model, id)] : []))
      },
      /** Nothing is good for anything without its grant, which oidc-provider destroys beside this. */
      async revokeByGrantId() {},
    }
  }
}
