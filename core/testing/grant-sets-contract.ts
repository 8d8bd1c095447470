// What grant stores promise of sets. For grant-store-contract.ts.
import type { GrantStore } from '../access/grant-store.ts'
import { type Promises, same } from './contract.ts'
import { forBoth, LONG, MINUTE } from './grant-steps.ts'

export const sets: Promises<GrantStore>['alone'] = {
  'returns the members of a set, oldest first, and their number': forBoth(async (store, set) => {
    same(await store.members(set), [], 'a set that nobody joined is empty')
    await store.leave(set, 'a')
    same(await store.join(set, 'b', MINUTE, 10), 1, 'join gives how many there are')
    same(await store.join(set, 'a', LONG, 10), 2, 'join gives how many there are')
    same(await store.join(set, '{"naïve 🦆"}\n', MINUTE, 10), 3, 'a member is any text')
    same(await store.members(set), ['b', 'a', '{"naïve 🦆"}\n'], 'members are in the order in which they joined')
    same(await store.join(set, 'b', MINUTE, 10), 3, 'a member that joins again is there once')
    same(await store.members(set), ['a', '{"naïve 🦆"}\n', 'b'], 'a member that joins again is the youngest')
    await store.leave(set, 'a')
    await store.leave(set, 'a')
    await store.leave(set, 'unknown')
    same(await store.members(set), ['{"naïve 🦆"}\n', 'b'], 'who left is not there, and the others are')
  }),
  'keeps the newest members up to the limit': forBoth(async (store, set) => {
    for (const member of ['a', 'b', 'c']) await store.join(set, member, MINUTE, 3)
    same(await store.join(set, 'd', MINUTE, 3), 3, 'of more than `most` the oldest go')
    same(await store.members(set), ['b', 'c', 'd'], 'of more than `most` the oldest go')
    await store.join(set, 'b', MINUTE, 3)
    same(await store.join(set, 'e', MINUTE, 2), 2, 'a smaller `most` takes effect at once')
    same(await store.members(set), ['b', 'e'], 'who joined again is not the oldest')
    same(await store.join(set, 'f', MINUTE, 0), 0, 'a `most` of 0 keeps nobody')
    same(await store.members(set), [], 'a `most` of 0 keeps nobody')
  }),
  'expires members one by one, each after the longest ttl it was given': forBoth(async (store, set, expiry) => {
    const inTime = expiry.start()
    await store.join(set, 'short', expiry.ms, 10)
    await store.join(set, 'long', MINUTE, 10)
    await store.join(set, 'again', MINUTE, 10)
    same(await inTime(store.join(set, 'again', expiry.ms, 10)), 3, 'all of them are there')
    await expiry.wait(async () => (await store.members(set)).length < 3)
    same(await store.members(set), ['long', 'again'], 'who is past its time is gone, and nobody else')
    same(await store.join(set, 'new', MINUTE, 3), 3, 'who is past its time does not count')
    same(await store.members(set), ['long', 'again', 'new'], 'who is past its time does not count for `most`')
  }),
  'deletes a set after all its members have expired': forBoth(async (store, set, expiry) => {
    await store.join(set, 'a', expiry.ms, 10)
    await store.join(set, 'b', expiry.ms, 10)
    await expiry.wait(async () => (await store.members(set)).length === 0)
    same(await store.members(set), [], 'who is past its time is gone')
    same(await store.join(set, 'c', MINUTE, 10), 1, 'a set can be joined again')
  }),
  'separates a set from the text stored under the same key': forBoth(async (store, key) => {
    await store.join(key, 'member', MINUTE, 10)
    same(await store.get(key), undefined, 'a set is no text')
    same(await store.add(key, 'text', MINUTE), true, 'a set is no text')
    same([await store.get(key), await store.members(key)], ['text', ['member']], 'a text and a set of one key are two')
    await store.take(key)
    same(await store.members(key), ['member'], 'take leaves the set')
  }),
}
