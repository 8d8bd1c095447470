// The grant store of all processes of this host, in the file. thread/grants.ts has what happens there.
import { checkGrantTtl, type GrantStore, grantKindOf } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import type { GrantPlace } from './thread/grants.ts'
import type { Writer } from './writer.ts'

const placeOf = (key: string): GrantPlace => ({ key, pending: grantKindOf(key) === 'pending' })

/** The key, where it is of some kind. */
const checked = (key: string) => placeOf(key).key

function kept<Value>(answer: Value): Exclude<Value, 'large'> {
  if (answer !== 'large') return answer as Exclude<Value, 'large'>
  throw new HostError('unavailable', {
    detail: 'what is to be kept for this login is too large',
    reason: 'an entry does not fit into the bytes that all pending ones may have',
  })
}

export const createSqliteGrantStore = (file: Writer): GrantStore => ({
  shared: true,
  get: async key => file.ask('getGrant', checked(key)),
  async set(key, value, ttl) {
    kept(await file.ask('setGrant', placeOf(key), value, checkGrantTtl(ttl)))
  },
  async add(key, value, ttl) {
    return kept(await file.ask('addGrant', placeOf(key), value, checkGrantTtl(ttl))) === 'done'
  },
  async replace(key, from, to, ttl) {
    return kept(await file.ask('replaceGrant', placeOf(key), from, to, checkGrantTtl(ttl))) === 'done'
  },
  take: async key => file.ask('takeGrant', checked(key)),
  async delete(...keys) {
    await file.ask('deleteGrants', keys.map(checked))
  },
  join: async (set, member, ttl, most) =>
    kept(await file.ask('joinGrants', placeOf(set), member, checkGrantTtl(ttl), most)),
  async leave(set, member) {
    kept(await file.ask('leaveGrants', placeOf(set), member))
  },
  members: async set => file.ask('grantMembers', checked(set)),
})
