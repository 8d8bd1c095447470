// Where the authorization server keeps clients, grants, codes and tokens: in this process, for as long as it runs.
// Bounded, because anyone on this machine may register clients.
import { LRUCache } from 'lru-cache'

const MAX_ENTRIES = 10_000

interface Payload {
  readonly uid?: string
  readonly grantId?: string
  consumed?: number
}

/** The adapter of one authorization server, as oidc-provider asks for it: by the name of a model. */
export function createMemoryAdapter() {
  const entries = new LRUCache<string, Payload>({ max: MAX_ENTRIES })
  return (model: string) => {
    const keyOf = (id: string) => `${model} ${id}`
    const first = (matches: (payload: Payload) => boolean) => {
      for (const [key, payload] of entries.entries()) {
        if (key.startsWith(`${model} `) && matches(payload)) return payload
      }
      return undefined
    }
    return {
      async upsert(id: string, payload: Payload, expiresIn?: number) {
        entries.set(keyOf(id), payload, expiresIn === undefined ? {} : { ttl: expiresIn * 1_000 })
      },
      async find(id: string) {
        return entries.get(keyOf(id))
      },
      async findByUid(uid: string) {
        return first(payload => payload.uid === uid)
      },
      async findByUserCode() {
        return undefined
      },
      async consume(id: string) {
        const payload = entries.get(keyOf(id))
        if (payload) payload.consumed = Math.floor(Date.now() / 1_000)
      },
      async destroy(id: string) {
        entries.delete(keyOf(id))
      },
      async revokeByGrantId(grantId: string) {
        for (const [key, payload] of [...entries.entries()]) {
          if (key.startsWith(`${model} `) && payload.grantId === grantId) entries.delete(key)
        }
      },
    }
  }
}
