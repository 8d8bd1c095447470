// Where oidc-provider keeps clients, grants, codes and tokens: in what this plugin keeps.
import type { KeptState, Payload } from './kept-state.ts'

/** The adapter of one authorization server, as oidc-provider asks for it: by the name of a model. */
export function createAdapter({ entries, changed }: Pick<KeptState, 'entries' | 'changed'>) {
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
        // To lru-cache a `ttl` of 0 is none.
        entries.set(keyOf(id), payload, { ttl: expiresIn === undefined ? 0 : Math.max(1, expiresIn * 1_000) })
        changed()
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
        changed()
      },
      async destroy(id: string) {
        entries.delete(keyOf(id))
        changed()
      },
      async revokeByGrantId(grantId: string) {
        for (const [key, payload] of [...entries.entries()]) {
          if (key.startsWith(`${model} `) && payload.grantId === grantId) entries.delete(key)
        }
        changed()
      },
    }
  }
}
