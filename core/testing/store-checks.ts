// The contract of the storage primitive.
import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Fields, Outcome, Query, ReadAnswers, RecordStep, Step, Store } from '../store/store.ts'
import type { Contract } from './contract.ts'

const P = 'partition'
const HOUR = 3_600_000
const FOREVER = { messages: 1_000, bytes: 1_000_000 }
const ODD = ['__proto__', 'constructor', '', '.', '#', '-1', '{a}', 'naïve 🦆', 'a:b', '*', '\0\r\n"\\']

const write = (store: Store, ...steps: readonly Step[]) => store.transact(P, steps)

async function done(outcome: Outcome | Promise<Outcome>) {
  const found = await outcome
  if (!found.done) throw new Error(`the condition of step ${found.step} does not hold: ${JSON.stringify(found.found)}`)
  return found.results
}

/** Returns the version of the new record, which is the time of the store. */
async function create(store: Store, record: string, fields: Fields) {
  const outcome = await write(store, { record, exists: false, set: fields })
  const [found] = await done(outcome)
  deepEqual(found, { version: outcome.now })
  return outcome.now
}

async function refused(outcome: Outcome | Promise<Outcome>) {
  const found = await outcome
  return found.done ? undefined : found.step
}

async function read<const One extends Query>(
  store: Store,
  query: One,
  partition = P,
): Promise<ReadAnswers<readonly [One]>[0]> {
  const results = await store.read(partition, [query] as const)
  return results[0] as ReadAnswers<readonly [One]>[0]
}

const fieldsOf = async (store: Store, record: string) => (await read(store, { record }))?.fields

const membersOf = async (store: Store, sortedSet: string) =>
  (await read(store, { sortedSet, limit: 1_000 })).members.map(({ member }) => member)

const page = async (store: Store, log: string, after: number, bytes?: number) => {
  const found = await read(store, { log, after, ...(bytes === undefined ? {} : { bytes }) })
  return found && [found.last, found.messages]
}

const records: Contract<Store>['oneNode'] = {
  async 'creates, changes and deletes records, with a version that counts changes'(store) {
    equal(await read(store, { record: 'r' }), undefined)
    deepEqual(await done(write(store, { record: 'r' })), [{ version: 0 }])
    const first = await create(store, 'r', { a: '1', b: '2' })
    deepEqual(await done(write(store, { record: 'r', set: { a: '1' }, unset: ['c'] })), [{ version: first }])
    const change: Step = { record: 'r', set: { a: '3', c: '4' }, unset: ['b', 'c'] }
    deepEqual(await done(write(store, change)), [{ version: first + 1 }])
    const found = await read(store, { record: 'r' })
    deepEqual([found?.version, found?.fields, found?.expires], [first + 1, { a: '3' }, undefined])
    deepEqual(await done(write(store, { record: 'r', unset: ['a'] })), [{ version: first + 2 }])
    deepEqual(await fieldsOf(store, 'r'), {})
    deepEqual(await done(write(store, { record: 'r', delete: true })), [{ version: 0 }])
    deepEqual(await done(write(store, { record: 'r', delete: true, know: 0 })), [{ version: 0 }])
    equal(await read(store, { record: 'r' }), undefined)
  },
  async 'changes nothing if a condition of any step does not hold, and returns what it found'(store) {
    const version = await create(store, 'r', { a: '1' })
    await done(write(store, { sortedSet: 's', put: { m: 1 } }, { log: 'l', append: ['x'] }))
    const changes: readonly Step[] = [
      { record: 'other', set: { a: '1' } },
      { sortedSet: 'more', put: { m: 1 } },
      { log: 'next', append: ['x'] },
    ]
    const attempts: ReadonlyArray<readonly [Step, object]> = [
      [
        { record: 'r', version: version + 1, delete: true },
        { version, fields: { a: '1' } },
      ],
      [
        { record: 'none', exists: true, set: { a: '1' } },
        { version: 0, fields: {} },
      ],
      [{ sortedSet: 's', has: ['m'], below: 5, delete: true }, { size: 1 }],
      [{ log: 'l', after: 3, append: ['y'] }, { last: 1 }],
    ]
    for (const [step, expected] of attempts) {
      const outcome = await write(store, ...changes, step)
      deepEqual({ ...outcome, now: 0 }, { done: false, step: 3, found: expected, now: 0 })
    }
    deepEqual(await fieldsOf(store, 'other'), undefined)
    deepEqual(await membersOf(store, 'more'), [])
    equal(await page(store, 'next', 0), undefined)
    deepEqual([await fieldsOf(store, 'r'), await membersOf(store, 's')], [{ a: '1' }, ['m']])
  },
  async 'checks conditions of records'(store) {
    const version = await create(store, 'r', { a: '1', n: '5' })
    const conditions: ReadonlyArray<readonly [Omit<RecordStep, 'record'>, boolean]> = [
      [{ exists: true }, true],
      [{ exists: false }, false],
      [{ version }, true],
      [{ version: 0 }, false],
      [{ where: { a: '1', b: null } }, true],
      [{ where: { a: '2' } }, false],
      [{ where: { a: null } }, false],
      [{ where: { b: '' } }, false],
      [{ where: { a: ['2', '1'], b: ['3', null] } }, true],
      [{ where: { a: ['2', null] } }, false],
      [{ where: { a: [] } }, false],
      [{ where: Object.fromEntries(ODD.map(name => [name, null])) }, true],
      [{ most: { n: 5, absent: 0 } }, true],
      [{ most: { n: 4 } }, false],
      [{ most: { n: 7 }, add: { n: 2 } }, true],
      [{ most: { n: 7 }, add: { n: 1 } }, false],
      [{ most: { absent: -1 } }, false],
    ]
    for (const [condition, expected] of conditions) {
      const outcome = await write(store, { record: 'r', ...condition })
      equal(outcome.done, expected, JSON.stringify(condition))
    }
    for (const [condition, expected] of [
      [{ exists: true }, false],
      [{ version: 0, exists: false, where: { a: null }, most: { n: 0 } }, true],
    ] as const) {
      equal((await write(store, { record: 'none', ...condition })).done, expected)
    }
  },
  async 'adds integers exactly'(store) {
    const large = Number.MAX_SAFE_INTEGER - 1
    await done(write(store, { record: 'r', add: { a: 5, b: -3, big: large, time: 1_764_180_000_123 } }))
    await done(write(store, { record: 'r', set: { c: '10' }, add: { a: -5, big: 1, c: 1 }, most: { c: 1 } }))
    deepEqual(await fieldsOf(store, 'r'), {
      ...{ a: '0', b: '-3', big: String(Number.MAX_SAFE_INTEGER), c: '11', time: '1764180000123' },
    })
  },
  async 'returns the fields only if the version is not the known one'(store) {
    const [found] = await done(write(store, { record: 'r', set: { a: '1' }, know: 0 }))
    const version = found?.version ?? 0
    deepEqual(found, { version, fields: { a: '1' } })
    deepEqual(await done(write(store, { record: 'r', know: version })), [{ version }])
    deepEqual(await done(write(store, { record: 'r', set: { b: '2' }, know: version })), [
      { version: version + 1, fields: { a: '1', b: '2' } },
    ])
    deepEqual(await done(write(store, { record: 'r', delete: true, know: version + 1 })), [
      { version: 0, fields: { a: '1', b: '2' } },
    ])
  },
  async 'accepts any text as partition, key, field, value, member and message'(store) {
    const fields = Object.fromEntries(ODD.map(name => [name, `value of ${name}`]))
    const put = Object.fromEntries(ODD.map((name, index) => [name, index]))
    for (const key of ODD) {
      const [record, set, log] = await done(
        store.transact(key, [
          { record: key, set: fields, know: 0 },
          { sortedSet: key, put },
          { log: key, append: ODD },
        ]),
      )
      deepEqual([record?.fields, set, log], [fields, { size: ODD.length }, { last: ODD.length }])
    }
    for (const key of ODD) {
      const [record, set, log] = await store.read(key, [
        { record: key },
        { sortedSet: key, limit: 100 },
        { log: key, after: 0 },
      ] as const)
      deepEqual([record?.fields, set.members.map(({ member }) => member), log?.messages], [fields, ODD, ODD])
      equal((await store.transact(key, [{ record: key, where: fields, add: { n: 1 } }])).done, true)
      equal((await store.transact(key, [{ sortedSet: key, has: ODD, remove: ODD, ttl: HOUR }])).done, true)
      deepEqual(await read(store, { sortedSet: key, limit: 1 }, key).then(({ size }) => size), 0)
    }
    for (const name of ['__proto__', 'constructor']) {
      await done(write(store, { record: name, add: { [name]: 2 } }))
      deepEqual(await fieldsOf(store, name), Object.fromEntries([[name, '2']]))
    }
  },
  async 'keeps large values, transactions and answers'(store) {
    const large = 'ä'.repeat(500_000)
    const put = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`member ${index}`, index]))
    const set = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field ${index}`, `${index}`]))
    const append = Array.from({ length: 5_000 }, (_, index) => `message ${index}`)
    await done(
      write(
        store,
        { record: 'r', set },
        { sortedSet: 's', put },
        { log: 'l', append },
        { record: 'x', set: { large } },
      ),
    )
    const [record, members, log, one] = await store.read(P, [
      ...([{ record: 'r' }, { sortedSet: 's', limit: 100_000 }, { log: 'l', after: 0 }, { record: 'x' }] as const),
    ] as const)
    deepEqual([record?.fields, members.members.length, log?.messages], [set, 5_000, append])
    equal(one?.fields['large'], large)
    const steps = Array.from({ length: 300 }, (_, index) => ({ record: `r${index}`, set: { a: '1' } }))
    equal((await done(store.transact('many', steps))).length, 300)
  },
}

const sets: Contract<Store>['oneNode'] = {
  async 'orders members by exact scores, then by text'(store) {
    const scores = {
      low: -1.5,
      a: 0.1,
      b: 0.1,
      c: 0.2,
      max: Number.MAX_SAFE_INTEGER,
      next: Number.MAX_SAFE_INTEGER - 1,
    }
    await done(write(store, { sortedSet: 's', put: { ...scores, c: 7 } }))
    deepEqual(await done(write(store, { sortedSet: 's', put: { c: 0.2 } })), [{ size: 6 }])
    const ranges: ReadonlyArray<readonly [object, readonly string[]]> = [
      [{}, ['low', 'a', 'b', 'c', 'next', 'max']],
      [{ limit: 2 }, ['low', 'a']],
      [{ limit: 0 }, []],
      [{ reverse: true }, ['max', 'next', 'c', 'b', 'a', 'low']],
      [{ reverse: true, limit: 2, to: 0.15 }, ['b', 'a']],
      [{ from: 0.1 }, ['a', 'b', 'c', 'next', 'max']],
      [{ from: 0.1, to: 0.1 }, ['a', 'b']],
      [{ from: Number.MAX_SAFE_INTEGER }, ['max']],
      [{ from: 1, to: 0 }, []],
    ]
    for (const [range, expected] of ranges) {
      const { members, size } = await read(store, { sortedSet: 's', limit: 100, ...range })
      deepEqual([members.map(({ member }) => member), size], [expected, 6], JSON.stringify(range))
      for (const { member, score } of members) equal(score, scores[member as keyof typeof scores])
    }
  },
  async 'checks and changes sorted sets, with conditions after the removal of low scores'(store) {
    await done(write(store, { sortedSet: 's', put: { a: 1, b: 2, c: 3, d: 4 } }))
    const attempts: ReadonlyArray<readonly [object, boolean]> = [
      [{ most: 4 }, true],
      [{ most: 3 }, false],
      [{ has: ['a', 'd'], lacks: ['e'] }, true],
      [{ has: ['e'] }, false],
      [{ lacks: ['a'] }, false],
      [{ below: 2, has: ['a'] }, false],
      [{ below: 2, lacks: ['b'] }, false],
      [{ below: 3, most: 1 }, false],
    ]
    for (const [step, expected] of attempts) {
      equal((await write(store, { sortedSet: 's', ...step })).done, expected, JSON.stringify(step))
    }
    deepEqual(await membersOf(store, 's'), ['a', 'b', 'c', 'd'])
    deepEqual(await done(write(store, { sortedSet: 's', below: 2, most: 3, has: ['b'], lacks: ['a'] })), [{ size: 3 }])
    deepEqual(await done(write(store, { sortedSet: 's', remove: ['b', 'x'], put: { e: 0, c: 9 } })), [{ size: 3 }])
    deepEqual(await membersOf(store, 's'), ['e', 'd', 'c'])
    deepEqual(await done(write(store, { sortedSet: 's', put: { f: 10 }, keep: 2 })), [{ size: 2 }])
    deepEqual(await membersOf(store, 's'), ['c', 'f'])
    deepEqual(await done(write(store, { sortedSet: 's', touch: { f: 8, x: 1 } })), [{ size: 2 }])
    deepEqual(await membersOf(store, 's'), ['f', 'c'])
    deepEqual(await done(write(store, { sortedSet: 's', remove: ['f'], touch: { f: 1 }, put: { c: 2 } })), [
      { size: 1 },
    ])
    deepEqual(await done(write(store, { sortedSet: 's', remove: ['c'], put: { c: 1 }, keep: 5 })), [{ size: 1 }])
    deepEqual(await done(write(store, { sortedSet: 's', delete: true })), [{ size: 0 }])
    deepEqual(await done(write(store, { sortedSet: 's', most: 0, put: { a: 1 }, keep: 0 })), [{ size: 0 }])
  },
  async 'evaluates relative scores by its clock'(store) {
    const { now } = await write(store, { sortedSet: 's', put: { past: { now: -HOUR }, soon: { now: HOUR }, epoch: 0 } })
    ok(Math.abs(now - Date.now()) < HOUR, 'the clock of the store is that of the test, about')
    const { members } = await read(store, { sortedSet: 's', from: { now: -2 * HOUR }, to: { now: 0 }, limit: 10 })
    deepEqual(members, [{ member: 'past', score: now - HOUR }])
    deepEqual(await done(write(store, { sortedSet: 's', below: { now: 0 }, most: 1, has: ['soon'] })), [{ size: 1 }])
    deepEqual(await membersOf(store, 's'), ['soon'])
  },
}

const logs: Contract<Store>['oneNode'] = {
  async 'numbers messages from 1 and reads those after a number'(store) {
    equal(await page(store, 'l', 0), undefined)
    deepEqual(await done(write(store, { log: 'l', append: ['m1', 'm2'] })), [{ last: 2 }])
    deepEqual(await done(write(store, { log: 'l', append: [] })), [{ last: 2 }])
    deepEqual(await done(write(store, { log: 'l', append: ['m3'], after: 2 })), [{ last: 3 }])
    deepEqual(await page(store, 'l', 0), [3, ['m1', 'm2', 'm3']])
    deepEqual(await page(store, 'l', 2), [3, ['m3']])
    deepEqual(await page(store, 'l', 3), [3, []])
    deepEqual(await page(store, 'l', 4), [3, undefined])
    deepEqual(await done(write(store, { log: 'l', delete: true })), [{ last: 0 }])
    equal(await page(store, 'l', 0), undefined)
    deepEqual(await done(write(store, { log: 'l', append: ['new'] })), [{ last: 1 }])
  },
  async 'stores a repeated append once and refuses other messages under the same numbers'(store) {
    deepEqual(await done(write(store, { log: 'l', after: 0, append: ['a', 'b'] })), [{ last: 2 }])
    deepEqual(await done(write(store, { log: 'l', after: 2, append: ['c'], keep: { messages: 2, bytes: 100 } })), [
      { last: 3 },
    ])
    deepEqual(await done(write(store, { log: 'l', after: 1, append: ['b'] })), [{ last: 3 }])
    deepEqual(await done(write(store, { log: 'l', after: 1, append: ['b', 'c'], keep: { messages: 1, bytes: 1 } })), [
      { last: 3 },
    ])
    equal(await refused(write(store, { log: 'l', after: 1, append: ['x'] })), 0)
    equal(await refused(write(store, { log: 'l', after: 0, append: ['a'] })), 0)
    equal(await refused(write(store, { log: 'l', after: 2, append: ['c', 'd'] })), 0)
    equal(await refused(write(store, { log: 'l', after: 4, append: ['e'] })), 0)
    equal(await refused(write(store, { log: 'l', after: 2 })), 0)
    equal(await refused(write(store, { log: 'none', after: 1, append: ['e'] })), 0)
    deepEqual(await page(store, 'l', 1), [3, ['b', 'c']])
  },
  async 'removes the oldest messages above the limits, but never the newest'(store) {
    await done(write(store, { log: 'l', append: ['1', '2', '3', '4'], keep: { messages: 3, bytes: 100 } }))
    deepEqual(await page(store, 'l', 0), [4, undefined])
    deepEqual(await page(store, 'l', 1), [4, ['2', '3', '4']])
    await done(write(store, { log: 'l', append: ['üü'], keep: { messages: 10, bytes: 6 } }))
    deepEqual(await page(store, 'l', 2), [5, ['3', '4', 'üü']])
    await done(write(store, { log: 'l', append: ['ü'], keep: { messages: 10, bytes: 6 } }))
    deepEqual(await page(store, 'l', 4), [6, ['üü', 'ü']])
    deepEqual(await page(store, 'l', 3), [6, undefined])
    await done(write(store, { log: 'l', append: ['x'.repeat(1_000)], keep: { messages: 10, bytes: 6 } }))
    deepEqual(await page(store, 'l', 6), [7, ['x'.repeat(1_000)]])
    await done(write(store, { log: 'l', append: ['y'], keep: { messages: 10, bytes: 1_001 } }))
    deepEqual(await page(store, 'l', 6), [8, ['x'.repeat(1_000), 'y']])
  },
  async 'empties a log at a number'(store) {
    await done(write(store, { log: 'l', append: ['1', '2'], ttl: HOUR }))
    deepEqual(await done(write(store, { log: 'l', reset: 7, after: 1, append: ['8'], keep: FOREVER })), [{ last: 8 }])
    deepEqual(
      [await page(store, 'l', 7), await page(store, 'l', 6)],
      [
        [8, ['8']],
        [8, undefined],
      ],
    )
    deepEqual(await done(write(store, { log: 'l', reset: 3 })), [{ last: 3 }])
    deepEqual(
      [await page(store, 'l', 3), await page(store, 'l', 2)],
      [
        [3, []],
        [3, undefined],
      ],
    )
    deepEqual(await done(write(store, { log: 'new', reset: 0 })), [{ last: 0 }])
    deepEqual(await page(store, 'new', 0), [0, []])
    deepEqual(await done(write(store, { log: 'new', after: 0, append: ['1'] })), [{ last: 1 }])
  },
  async 'limits a page by bytes: at least one message, none for 0'(store) {
    await done(write(store, { log: 'l', append: ['12345', 'ü234', 'x'.repeat(100), '1', '2'] }))
    const next = async (after: number, bytes: number) => (await page(store, 'l', after, bytes))?.[1]
    deepEqual(await next(0, 10), ['12345', 'ü234'])
    deepEqual(await next(0, 9), ['12345'])
    deepEqual(await next(2, 10), ['x'.repeat(100)])
    deepEqual(await next(3, 10), ['1', '2'])
    deepEqual(await next(0, 0), [])
    deepEqual(await next(6, 0), undefined)
  },
}

const times: Contract<Store>['oneNode'] = {
  async 'reports when a record expires'(store) {
    const { now: version } = await write(store, { record: 'r', set: { a: '1' }, ttl: HOUR })
    const around = (expires: number | undefined, expected: number) =>
      ok(expires !== undefined && Math.abs(expires - expected) < HOUR / 4, `${expires} is about ${expected}`)
    around((await read(store, { record: 'r' }))?.expires, version + HOUR)
    for (const [step, hours] of [
      [{ set: { a: '2' } }, 1],
      [{ ttl: { new: 5 * HOUR } }, 1],
      [{ ttl: 3 * HOUR }, 3],
    ] as const) {
      const [found] = await done(write(store, { record: 'r', ...step }))
      around(found?.expires, version + hours * HOUR)
      equal(found?.version, version + 1)
    }
    const refusal = await write(store, { record: 'r', exists: false })
    around(refusal.done ? 0 : refusal.found.expires, version + 3 * HOUR)
    await done(write(store, { record: 'r', delete: true }, { record: 'n', set: { a: '1' }, ttl: { new: HOUR } }))
    around((await read(store, { record: 'n' }))?.expires, version + HOUR)
    await create(store, 'r', { a: '1' })
  },
  async 'removes expired records, sets and logs'(store, { ms, start, wait }) {
    const inTime = start()
    const all = (ttl: number): readonly Step[] => [
      { record: 'r', set: { a: '1' }, ttl },
      { sortedSet: 's', put: { a: 1 }, ttl },
      { log: 'l', append: ['a'], ttl },
    ]
    await inTime(done(write(store, ...all(ms))))
    await inTime(done(store.transact('kept', all(HOUR))))
    await inTime(
      done(
        store.transact(
          'kept',
          [...all(ms)].map(step => ({ ...step, ttl: HOUR })),
        ),
      ),
    )
    const isThere = async () => (await fieldsOf(store, 'r')) !== undefined
    ok(await inTime(isThere()))
    await wait(async () => !(await isThere()))
    await wait(async () => (await membersOf(store, 's')).length === 0)
    await wait(async () => (await page(store, 'l', 0)) === undefined)
    const found = await done(
      write(
        store,
        { record: 'r', exists: false, version: 0, where: { a: null }, set: { b: '1' }, know: 0 },
        { sortedSet: 's', most: 0, lacks: ['a'], put: { b: 1 } },
        { log: 'l', after: 0, append: ['b'] },
      ),
    )
    deepEqual([found[0]?.fields, ...found.slice(1)], [{ b: '1' }, { size: 1 }, { last: 1 }])
    deepEqual([(await read(store, { record: 'r' }))?.expires, await page(store, 'l', 0)], [undefined, [1, ['b']]])
    const [record, set, log] = await store.read('kept', [
      { record: 'r' },
      { sortedSet: 's', limit: 1 },
      { log: 'l', after: 0 },
    ] as const)
    deepEqual([record?.fields, set.size, log?.last], [{ a: '1' }, 1, 2])
  },
  async 'keeps the ttl of a set and a log that later steps change'(store, { ms, start, wait }) {
    const inTime = start()
    await inTime(done(write(store, { sortedSet: 's', put: { a: 1 }, ttl: ms }, { log: 'l', append: ['a'], ttl: ms })))
    await inTime(done(write(store, { sortedSet: 's', put: { b: 1 } }, { log: 'l', reset: 4, append: ['b'] })))
    await wait(async () => (await membersOf(store, 's')).length === 0)
    await wait(async () => (await page(store, 'l', 4)) === undefined)
    deepEqual([await membersOf(store, 's'), await page(store, 'l', 4)], [[], undefined])
  },
}

const atOnce = Array.from({ length: 40 }, (_, index) => index)

const concurrent: Contract<Store>['oneNode'] = {
  async 'lets one of many concurrent changes with the same condition succeed'(store) {
    const version = await create(store, 'r', { a: '1' })
    await create(store, 'once', { code: '1' })
    const attempts: readonly ((index: number) => Step)[] = [
      index => ({ record: 'r', version, set: { a: `${index + 2}` } }),
      index => ({ record: 'new', exists: false, set: { by: `${index}` } }),
      () => ({ record: 'once', exists: true, delete: true }),
      index => ({ sortedSet: 's', most: 0, put: { [index]: 1 } }),
      index => ({ log: 'l', after: 0, append: [`${index}`] }),
    ]
    for (const attempt of attempts) {
      const outcomes = await Promise.all(atOnce.map(index => write(store, attempt(index))))
      equal(outcomes.filter(outcome => outcome.done).length, 1)
    }
  },
  async 'reads one consistent state'(store) {
    const moves = atOnce.map(index =>
      write(
        store,
        { record: 'r', set: { n: `${index}` } },
        { sortedSet: 's', put: { n: index } },
        { log: 'l', reset: index },
      ),
    )
    const reads = atOnce.map(() =>
      store.read(P, [{ record: 'r' }, { sortedSet: 's', limit: 1 }, { log: 'l', after: 0, bytes: 0 }] as const),
    )
    await Promise.all(moves)
    for (const [record, set, log] of await Promise.all(reads)) {
      const number = record && Number(record.fields['n'])
      deepEqual([set.members[0]?.score, log?.last], [number, number])
    }
  },
}

const twoNodes: Contract<Store>['twoNodes'] = {
  async 'reads data of the other node'(one, other) {
    await done(
      write(one, { record: 'r', set: { a: '1' } }, { sortedSet: 's', put: { a: 1 } }, { log: 'l', append: ['a'] }),
    )
    deepEqual(
      [await fieldsOf(other, 'r'), await membersOf(other, 's'), await page(other, 'l', 0)],
      [...[{ a: '1' }, ['a'], [1, ['a']]]],
    )
    await done(write(other, { record: 'r', delete: true }))
    equal(await fieldsOf(one, 'r'), undefined)
  },
  async 'loses no concurrent change'(one, other) {
    const changes = [one, other].flatMap(store =>
      atOnce.map(index => write(store, { record: 'r', add: { n: index } }, { log: 'l', append: [`${index}`] })),
    )
    await Promise.all(changes)
    const [found, log] = await one.read(P, [{ record: 'r' }, { log: 'l', after: 0 }] as const)
    equal(found?.fields['n'], String(2 * atOnce.reduce((sum, index) => sum + index, 0)))
    deepEqual(log?.messages?.toSorted(), [...atOnce, ...atOnce].map(String).toSorted())
  },
  async 'lets one of two nodes succeed'(one, other) {
    for (const index of atOnce) {
      const take: Step = { record: `${index}`, exists: false, set: { taken: '1' } }
      const outcomes = await Promise.all([write(one, take), write(other, take)])
      equal(outcomes.filter(outcome => outcome.done).length, 1)
    }
  },
}

export const storeChecks: Contract<Store> = {
  oneNode: { ...records, ...sets, ...logs, ...times, ...concurrent },
  twoNodes,
}
