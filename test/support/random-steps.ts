// Compares a store with the store of this process: the same random operations must have the same results.
import { expect } from 'chai'
import { createMemoryStore, type Query, type Step, type Store } from '../../core/store.ts'
import { createSeededRandom } from './seeded-random.ts'

const NAMES = ['a', 'b', '__proto__', 'constructor', 'with\0nul', 'ü€😀', "'; --"]
const VALUES = ['', '0', '1', '17', '-3', '__proto__', 'with\0nul', 'ü€😀', '"\\n{}', 'x'.repeat(3_000)]
const HOUR = 3_600_000

type Random = () => number

const intIn = (random: Random, most: number) => Math.floor(random() * (most + 1))
const oneOf = <Item>(random: Random, items: readonly Item[]): Item => items[intIn(random, items.length - 1)] as Item
const some = <Item>(random: Random, items: readonly Item[], most = 3): Item[] =>
  Array.from({ length: intIn(random, most) }, () => oneOf(random, items))
const maybe = <Part extends object>(random: Random, share: number, part: () => Part): Part | undefined =>
  random() < share ? part() : undefined
const entries = <Value>(random: Random, value: () => Value): Record<string, Value> =>
  Object.fromEntries(some(random, NAMES).map(name => [name, value()]))

const scoreIn = (random: Random) =>
  oneOf(random, [intIn(random, 5), -1.5, { now: HOUR * (1 + intIn(random, 100_000)) }])
const ttlIn = (random: Random) => oneOf(random, [HOUR, 2 * HOUR, 2 * HOUR, 0])

const recordStep = (random: Random, record: string): Step => ({
  record,
  ...maybe(random, 0.2, () => ({ exists: random() < 0.6 })),
  ...maybe(random, 0.1, () => ({ version: intIn(random, 3) })),
  ...maybe(random, 0.1, () => ({ where: entries(random, () => oneOf(random, [null, '1', [null, '0', '1']])) })),
  ...maybe(random, 0.1, () => ({ most: entries(random, () => intIn(random, 20)) })),
  ...maybe(random, 0.7, () => ({ set: entries(random, () => oneOf(random, VALUES)) })),
  ...maybe(random, 0.3, () => ({ unset: some(random, NAMES) })),
  ...maybe(random, 0.2, () => ({ add: { n: intIn(random, 4) - 2, constructor: 1 } })),
  ...maybe(random, 0.1, () => ({ delete: true })),
  ...maybe(random, 0.3, () => ({ ttl: oneOf(random, [ttlIn(random), { new: ttlIn(random) }]) })),
  ...maybe(random, 0.5, () => ({ know: intIn(random, 3) })),
})

const setStep = (random: Random, sortedSet: string): Step => ({
  sortedSet,
  ...maybe(random, 0.2, () => ({ below: scoreIn(random) })),
  ...maybe(random, 0.2, () => ({ most: intIn(random, 6) })),
  ...maybe(random, 0.1, () => ({ has: some(random, NAMES, 1) })),
  ...maybe(random, 0.1, () => ({ lacks: some(random, NAMES, 1) })),
  ...maybe(random, 0.8, () => ({ put: entries(random, () => scoreIn(random)) })),
  ...maybe(random, 0.3, () => ({ remove: some(random, NAMES) })),
  ...maybe(random, 0.2, () => ({ keep: intIn(random, 4) })),
  ...maybe(random, 0.05, () => ({ delete: true })),
  ...maybe(random, 0.2, () => ({ ttl: ttlIn(random) })),
})

const logStep = (random: Random, log: string): Step => ({
  log,
  ...maybe(random, 0.3, () => ({ after: intIn(random, 8) })),
  ...maybe(random, 0.8, () => ({ append: some(random, VALUES.slice(0, 4)) })),
  ...maybe(random, 0.1, () => ({ reset: intIn(random, 5) })),
  ...maybe(random, 0.4, () => ({ keep: { messages: 1 + intIn(random, 4), bytes: intIn(random, 10) } })),
  ...maybe(random, 0.05, () => ({ delete: true })),
  ...maybe(random, 0.2, () => ({ ttl: ttlIn(random) })),
})

/** At most one step for each key of a kind. */
function stepsIn(random: Random): Step[] {
  const kinds = [recordStep, setStep, logStep]
  const steps = new Map<string, Step>()
  for (let left = 1 + intIn(random, 2); left > 0; left--) {
    const kind = intIn(random, 2)
    const name = oneOf(random, NAMES)
    steps.set(`${kind} ${name}`, (kinds[kind] as typeof recordStep)(random, name))
  }
  return [...steps.values()]
}

function queriesIn(random: Random): Query[] {
  const name = () => oneOf(random, NAMES)
  return [
    { record: name() },
    {
      sortedSet: name(),
      limit: intIn(random, 5),
      reverse: random() < 0.5,
      ...maybe(random, 0.3, () => ({ from: scoreIn(random) })),
      ...maybe(random, 0.3, () => ({ to: scoreIn(random) })),
    },
    { log: name(), after: intIn(random, 8), ...maybe(random, 0.5, () => ({ bytes: intIn(random, 20) })) },
  ]
}

/** Times as whole hours from now: the clocks of the stores differ. */
function rounded(value: unknown): unknown {
  const now = Date.now()
  const text = JSON.stringify(value, (_, part) =>
    typeof part === 'number' && part > HOUR ? Math.round((part - now) / HOUR) : part,
  )
  return text && JSON.parse(text)
}

/** Runs random operations on two partitions; throws at the first difference. */
export async function compareWithMemory(store: Store, seed: number, count: number): Promise<void> {
  const numbers = createSeededRandom(seed)
  const random = () => numbers.below(1_000_000) / 1_000_000
  const memory = createMemoryStore()
  const partitions = [`${seed}`, `${seed}\0'ü`]
  for (let index = 0; index < count; index++) {
    const partition = oneOf(random, partitions)
    const steps = stepsIn(random)
    const said = `seed ${seed}, operation ${index}: ${JSON.stringify(steps)}`
    const durability = random() < 0.5 ? ('relaxed' as const) : undefined
    const found = await store.transact(partition, steps, durability)
    expect(rounded(found), said).to.deep.equal(rounded(await memory.transact(partition, steps)))
    const queries = queriesIn(random)
    const answers = await store.read(partition, queries)
    const inMemory = await memory.read(partition, queries)
    expect(rounded(answers), `${said}, then ${JSON.stringify(queries)}`).to.deep.equal(rounded(inMemory))
  }
}
