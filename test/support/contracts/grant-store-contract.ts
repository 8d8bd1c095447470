// The contract of grant stores.

import { rejects } from 'node:assert/strict'
import { type Contract, type Expiry, pause } from '../../../core/testing/contract.ts'
import { GRANT_PREFIXES, type GrantStore } from '../../../plugins/families/grant-store/index.ts'
import { holds, same } from './assertions.ts'

const MINUTE = 60_000
/** More than 2^31 milliseconds, which timers cannot wait for. */
const LONG = 90 * 86_400_000
const MANY = 50

const KEYS = Object.values(GRANT_PREFIXES).map(kind => `${kind}one`)
const [PENDING = '', GRANTED = ''] = KEYS

const forBoth =
  (act: (store: GrantStore, key: string, expiry: Expiry) => Promise<void>) =>
  async (store: GrantStore, expiry: Expiry) => {
    await Promise.all(KEYS.map(key => act(store, key, expiry)))
  }

/** Sets have granted keys. */
const forGranted =
  (act: (store: GrantStore, set: string, expiry: Expiry) => Promise<void>) => (store: GrantStore, expiry: Expiry) =>
    act(store, GRANTED, expiry)

const race = <Value>(stores: readonly GrantStore[], act: (store: GrantStore, index: number) => Promise<Value>) =>
  Promise.all(Array.from({ length: MANY }, (_, index) => act(stores[index % stores.length] as GrantStore, index)))

const texts: Contract<GrantStore>['oneNode'] = {
  'returns nothing for an unknown key': forBoth(async (store, key) => {
    same(await store.get(key), undefined, 'get gives undefined where nothing is')
    same(await store.take(key), undefined, 'take gives undefined where nothing is')
    same(await store.replace(key, '', 'x', MINUTE), false, 'replace gives false where nothing is, be `from` empty')
    same(await store.get(key), undefined, 'a replace that gave false wrote nothing')
    await store.delete(key)
    await store.delete()
  }),
  'returns the last text that was set': forBoth(async (store, key) => {
    await store.set(key, 'first', MINUTE)
    same(await store.get(key), 'first', 'get gives what was set')
    same(await store.get(key), 'first', 'get leaves it there')
    await store.set(key, 'second', MINUTE)
    same(await store.get(key), 'second', 'set writes over what was there')
    same(await store.get(`${key}-other`), undefined, 'a key that begins with another is another')
  }),
  'stores any text unchanged': forBoth(async (store, key) => {
    for (const text of ['', ' ', '0', '{"text":"naïve 🦆\\r\\n\u2028"}', '\u0000', 'x'.repeat(200_000)]) {
      await store.set(key, text, MINUTE)
      same(await store.get(key), text, 'get gives the text as it was set')
      same(await store.replace(key, text, 'next', MINUTE), true, 'replace compares the whole text')
      await store.set(key, text, MINUTE)
      same(await store.take(key), text, 'take gives the text as it was set')
    }
  }),
  'accepts any text after the kind as a key': forBoth(async (store, kind) => {
    const keys = ['', '{}', '}', '{a}b', 'a:b', 'a:set', 'naïve 🦆', 'with spaces\r\n'].map(rest => `${kind}${rest}`)
    for (const key of keys) await store.set(key, key, MINUTE)
    for (const key of keys) same(await store.get(key), key, 'each key has its own text')
    await store.delete(...keys)
    for (const key of keys) same(await store.get(key), undefined, 'delete deletes each of the keys')
  }),
  'adds an entry only if the key is unused': forBoth(async (store, key) => {
    same(await store.add(key, 'first', MINUTE), true, 'add gives true where nothing is')
    same(await store.add(key, 'second', MINUTE), false, 'add gives false where something is')
    same(await store.get(key), 'first', 'an add that gave false wrote nothing')
    await store.delete(key)
    same(await store.add(key, 'third', MINUTE), true, 'add gives true where it was deleted')
  }),
  'replaces an entry only if its current value matches': forBoth(async (store, key) => {
    await store.set(key, 'a', MINUTE)
    same(await store.replace(key, 'A', 'b', MINUTE), false, 'replace gives false where another text is')
    same(await store.get(key), 'a', 'a replace that gave false wrote nothing')
    same(await store.replace(key, 'a', 'b', MINUTE), true, 'replace gives true where it holds `from`')
    same(await store.get(key), 'b', 'replace writes `to`')
  }),
  'returns a taken entry to one caller only': forBoth(async (store, key) => {
    await store.set(key, 'a', MINUTE)
    same(await store.take(key), 'a', 'take gives what is there')
    same(await store.take(key), undefined, 'take deletes what it gives')
    same(await store.get(key), undefined, 'what was taken is gone')
  }),
  'deletes only the given keys': forBoth(async (store, key) => {
    for (const name of ['a', 'b', 'c']) await store.set(`${key}-${name}`, name, MINUTE)
    if (key === GRANTED) await store.join(`${key}-a`, 'member', MINUTE, 10)
    await store.delete(`${key}-a`, `${key}-b`, `${key}-unknown`)
    const left = await Promise.all(['a', 'b', 'c'].map(name => store.get(`${key}-${name}`)))
    same(left, [undefined, undefined, 'c'], 'delete deletes the texts of its keys alone')
    if (key === GRANTED) same(await store.members(`${key}-a`), [], 'delete deletes the sets of its keys as well')
  }),
  async 'deletes keys of both kinds in one call'(store) {
    const keys = Array.from({ length: 20 }, (_, index) => `${index % 2 ? PENDING : GRANTED}-${index}`)
    for (const key of keys) await store.set(key, key, MINUTE)
    await store.delete(...keys)
    const left = await Promise.all(keys.map(key => store.get(key)))
    same(left.filter(Boolean), [], 'delete deletes keys of both kinds')
  },
}

const times: Contract<GrantStore>['oneNode'] = {
  'expires entries after their ttl': forBoth(async (store, key, expiry) => {
    const ways: ReadonlyArray<(name: string, ttl: number) => Promise<unknown>> = [
      (name, ttl) => store.set(name, 'x', ttl),
      (name, ttl) => store.add(name, 'x', ttl),
      async (name, ttl) => {
        await store.set(name, 'a', MINUTE)
        await store.replace(name, 'a', 'x', ttl)
      },
    ]
    const names = ways.map((_, index) => `${key}-${index}`)
    const inTime = expiry.start()
    for (const [index, write] of ways.entries()) await write(names[index] ?? '', expiry.ms)
    const read = () => Promise.all(names.map(name => store.get(name)))
    same(await inTime(read()), ['x', 'x', 'x'], 'what is not past its time is there')
    await expiry.wait(async () => (await read()).every(text => text === undefined))
    same(await read(), [undefined, undefined, undefined], `what was kept for ${expiry.ms} ms is gone after it`)
    const [first = ''] = names
    same(await store.take(first), undefined, 'what is past its time is given to nobody')
    same(await store.replace(first, 'x', 'y', MINUTE), false, 'what is past its time is not replaced')
    same(await store.add(first, 'y', MINUTE), true, 'where something is past its time nothing is')
  }),
  'applies the new ttl when an entry is written again': forBoth(async (store, key, expiry) => {
    const inTime = expiry.start()
    await store.set(key, 'a', expiry.ms)
    await store.set(key, 'b', MINUTE)
    await store.set(`${key}-replaced`, 'a', expiry.ms)
    await inTime(store.replace(`${key}-replaced`, 'a', 'b', MINUTE))
    await pause(expiry.ms * 1.5)
    same(
      [await store.get(key), await store.get(`${key}-replaced`)],
      ['b', 'b'],
      'set and replace say anew how long something is there',
    )
  }),
  'supports a ttl of more than 2^31 ms and of a fraction of 1 ms': forBoth(async (store, key) => {
    await store.set(key, 'x', LONG)
    await store.set(`${key}-part`, 'x', MINUTE + 0.4)
    if (key === GRANTED) await store.join(key, 'member', LONG, 10)
    await pause(50)
    same([await store.get(key), await store.get(`${key}-part`)], ['x', 'x'], 'a long ttl is no short one')
    if (key === GRANTED) same(await store.members(key), ['member'], 'a long ttl of a member is no short one')
  }),
  'writes nothing if the ttl is 0 or less': forBoth(async (store, key) => {
    for (const ttl of [0, -1, Number.NEGATIVE_INFINITY]) {
      await store.set(key, 'a', MINUTE)
      await store.set(key, 'x', ttl)
      same(await store.get(key), undefined, `what is set for ${ttl} ms is gone at once, and so is what was there`)
      same(await store.add(key, 'x', ttl), true, 'add says whether the key was absent')
      same(await store.get(key), undefined, `what is added for ${ttl} ms is gone at once`)
      await store.set(key, 'a', MINUTE)
      same(await store.replace(key, 'a', 'x', ttl), true, 'replace says whether the key held `from`')
      same(await store.get(key), undefined, `what is replaced for ${ttl} ms is gone at once`)
      if (key !== GRANTED) continue
      same(await store.join(key, 'member', ttl, 10), 0, `who joins for ${ttl} ms is not there`)
      same(await store.members(key), [], `who joins for ${ttl} ms is given to nobody`)
    }
  }),
  'rejects an invalid ttl': forBoth(async (store, key) => {
    await store.set(key, 'a', MINUTE)
    for (const ttl of [Number.NaN, Number.POSITIVE_INFINITY, 1e18]) {
      for (const act of [
        () => store.set(key, 'x', ttl),
        () => store.add(key, 'x', ttl),
        () => store.replace(key, 'a', 'x', ttl),
        () => store.join(GRANTED, 'x', ttl, 10),
      ])
        await rejects(act, RangeError, `a ttl of ${ttl} is refused with a RangeError`)
    }
    same(await store.get(key), 'a', 'nothing is done of what is refused')
  }),
  async 'rejects a key of an unknown kind'(store) {
    for (const key of ['', 'one', 'Pending:one', ' granted:one', 'grantedone']) {
      for (const act of [
        () => store.get(key),
        () => store.set(key, 'x', MINUTE),
        () => store.add(key, 'x', MINUTE),
        () => store.replace(key, 'x', 'y', MINUTE),
        () => store.take(key),
        () => store.delete(key),
        () => store.join(key, 'x', MINUTE, 10),
        () => store.leave(key, 'x'),
        () => store.members(key),
      ])
        await rejects(act, RangeError, `the key "${key}" is refused with a RangeError`)
    }
    await store.set(GRANTED, 'x', MINUTE)
    await rejects(() => store.delete(GRANTED, 'one'), RangeError, 'delete refuses a key of neither kind')
    same(await store.get(GRANTED), 'x', 'nothing is done of what is refused')
  },
}

const count = (found: readonly unknown[], wanted: unknown) => found.filter(one => one === wanted).length

async function racing(...stores: readonly GrantStore[]) {
  const [store] = stores as [GrantStore]
  for (const key of KEYS) {
    await store.set(key, 'x', MINUTE)
    const taken = await race(stores, one => one.take(key))
    same(count(taken, 'x'), 1, `of ${MANY} that take one key, one gets what is there`)
    same(count(taken, undefined), MANY - 1, 'the others get undefined')

    const added = await race(stores, (one, index) => one.add(key, `${index}`, MINUTE))
    same(count(added, true), 1, `of ${MANY} that add one key, one does`)
    same(await store.get(key), `${added.indexOf(true)}`, 'what is there is of the one that was told so')

    await store.set(key, 'from', MINUTE)
    const replaced = await race(stores, (one, index) => one.replace(key, 'from', `${index}`, MINUTE))
    same(count(replaced, true), 1, `of ${MANY} that replace one text, one does`)
    same(await store.get(key), `${replaced.indexOf(true)}`, 'what is there is of the one that was told so')

    if (key !== GRANTED) continue
    const sizes = await race(stores, (one, index) => one.join(key, `${index}`, MINUTE, 2 * MANY))
    same(
      [...sizes].sort((a, b) => a - b),
      Array.from({ length: MANY }, (_, index) => index + 1),
      `of ${MANY} that join one set, each is told another size`,
    )
    same((await store.members(key)).length, MANY, 'all that joined are there')
    await race(stores, (one, index) => one.join(key, `next ${index}`, MINUTE, 10))
    same((await store.members(key)).length, 10, '`most` holds for those that join at the same time')
    await store.delete(key)
  }
}

const twoNodes: Contract<GrantStore>['twoNodes'] = {
  async 'shares entries between nodes'(one, other) {
    holds(one.shared && other.shared, 'the stores of two nodes say that they are shared')
    for (const key of KEYS) {
      await one.set(key, 'a', MINUTE)
      same(await other.get(key), 'a', 'what one node sets the other gets')
      same(await other.replace(key, 'a', 'b', MINUTE), true, 'what one node sets the other replaces')
      same(await one.take(key), 'b', 'what one node replaces the other takes')
      same(await other.take(key), undefined, 'what one node took is gone for the other')
      if (key !== GRANTED) continue
      await one.join(key, 'a', MINUTE, 10)
      same(await other.join(key, 'b', MINUTE, 10), 2, 'both nodes join one set')
      await other.leave(key, 'a')
      same(await one.members(key), ['b'], 'who leaves at one node is gone for the other')
      await other.delete(key)
      same(await one.members(key), [], 'what one node deletes is gone for the other')
    }
  },
  'lets one of many concurrent take, add, replace or join calls on both nodes succeed': racing,
}

const sets: Contract<GrantStore>['oneNode'] = {
  'returns the members of a set, oldest first, and their number': forGranted(async (store, set) => {
    same(await store.members(set), [], 'a set that nobody joined is empty')
    await store.leave(set, 'a')
    same(await store.join(set, 'b', MINUTE, 10), 1, 'join gives how many there are')
    same(await store.join(set, 'a', 2 * MINUTE, 10), 2, 'join gives how many there are')
    same(await store.join(set, '{"naïve 🦆"}\n', 3 * MINUTE, 10), 3, 'a member is any text')
    same(await store.members(set), ['b', 'a', '{"naïve 🦆"}\n'], 'members are in the order in which they expire')
    same(await store.join(set, 'b', 4 * MINUTE, 10), 3, 'a member that joins again is there once')
    same(await store.members(set), ['a', '{"naïve 🦆"}\n', 'b'], 'a member that joins again expires last')
    await store.leave(set, 'a')
    await store.leave(set, 'a')
    await store.leave(set, 'unknown')
    same(await store.members(set), ['{"naïve 🦆"}\n', 'b'], 'who left is not there, and the others are')
  }),
  'keeps the newest members up to the limit': forGranted(async (store, set) => {
    for (const [index, member] of ['a', 'b', 'c'].entries()) await store.join(set, member, MINUTE + index, 3)
    same(await store.join(set, 'd', 2 * MINUTE, 3), 3, 'of more than `most` the oldest go')
    same(await store.members(set), ['b', 'c', 'd'], 'of more than `most` the oldest go')
    await store.join(set, 'b', 3 * MINUTE, 3)
    same(await store.join(set, 'e', 4 * MINUTE, 2), 2, 'a smaller `most` takes effect at once')
    same(await store.members(set), ['b', 'e'], 'who joined again is not the oldest')
    same(await store.join(set, 'f', 5 * MINUTE, 0), 0, 'a `most` of 0 keeps nobody')
    same(await store.members(set), [], 'a `most` of 0 keeps nobody')
  }),
  'expires members one by one': forGranted(async (store, set, expiry) => {
    const inTime = expiry.start()
    await store.join(set, 'short', expiry.ms, 10)
    await store.join(set, 'long', MINUTE, 10)
    same(await inTime(store.join(set, 'again', MINUTE + 1, 10)), 3, 'all of them are there')
    await expiry.wait(async () => (await store.members(set)).length < 3)
    same(await store.members(set), ['long', 'again'], 'who is past its time is gone, and nobody else')
    same(await store.join(set, 'new', 2 * MINUTE, 3), 3, 'who is past its time does not count')
    same(await store.members(set), ['long', 'again', 'new'], 'who is past its time does not count for `most`')
  }),
  'deletes a set after all its members have expired': forGranted(async (store, set, expiry) => {
    await store.join(set, 'a', expiry.ms, 10)
    await store.join(set, 'b', expiry.ms, 10)
    await expiry.wait(async () => (await store.members(set)).length === 0)
    same(await store.members(set), [], 'who is past its time is gone')
    same(await store.join(set, 'c', MINUTE, 10), 1, 'a set can be joined again')
  }),
  'separates a set from the text stored under the same key': forGranted(async (store, key) => {
    await store.join(key, 'member', MINUTE, 10)
    same(await store.get(key), undefined, 'a set is no text')
    same(await store.add(key, 'text', MINUTE), true, 'a set is no text')
    same([await store.get(key), await store.members(key)], ['text', ['member']], 'a text and a set of one key are two')
    await store.take(key)
    same(await store.members(key), ['member'], 'take leaves the set')
  }),
}

export const grantStoreChecks: Contract<GrantStore> = {
  oneNode: {
    ...texts,
    ...times,
    ...sets,
    'lets one of many concurrent take, add, replace or join calls succeed': store => racing(store),
  },
  twoNodes,
}
