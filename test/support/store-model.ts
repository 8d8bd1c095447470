// Random transactions and queries on a store, compared with `applySteps` on a simple model.
import { expect } from 'chai'
import fc from 'fast-check'
import { applySteps, type PartitionState, type RecordState, scoreAt } from '../../core/store/apply-steps.ts'
import type { LogQuery, Query, SetQuery, Step, Store } from '../../core/store/store.ts'

const HOUR = 3_600_000

interface Entry<Value> {
  readonly value: Value
  readonly expires: number | undefined
}

interface LogEntry {
  readonly last: number
  readonly messages: readonly string[]
}

/** Every operation is written as its definition. */
class Model implements PartitionState {
  readonly records = new Map<string, RecordState>()
  readonly sets = new Map<string, Entry<ReadonlyMap<string, number>>>()
  readonly logs = new Map<string, Entry<LogEntry>>()

  record = (key: string) => this.records.get(key)
  putRecord(key: string, record: RecordState | undefined) {
    if (record) this.records.set(key, record)
    else this.records.delete(key)
  }

  membersOf = (set: string) =>
    [...(this.sets.get(set)?.value ?? [])].sort(([a, one], [b, other]) => one - other || (a < b ? -1 : 1))

  #putSet(set: string, members: ReadonlyArray<readonly [string, number]>) {
    if (members.length === 0) this.sets.delete(set)
    else this.sets.set(set, { value: new Map(members), expires: this.sets.get(set)?.expires })
  }

  scoreOf = (set: string, member: string) => this.sets.get(set)?.value.get(member)
  count = (set: string, from: number) => this.membersOf(set).filter(([, score]) => score >= from).length
  putMember(set: string, member: string, score: number) {
    this.#putSet(set, [...this.membersOf(set).filter(([other]) => other !== member), [member, score]])
  }
  removeMember(set: string, member: string) {
    this.#putSet(
      set,
      this.membersOf(set).filter(([other]) => other !== member),
    )
  }
  removeLowest(set: string, count: number) {
    this.#putSet(set, this.membersOf(set).slice(Math.max(0, count)))
  }
  deleteSet(set: string) {
    this.sets.delete(set)
  }
  expireSet(set: string, expires: number) {
    const found = this.sets.get(set)
    if (found) this.sets.set(set, { ...found, expires })
    this.forgetExpired()
  }

  #firstOf = ({ last, messages }: LogEntry) => last - messages.length + 1
  lastOf = (key: string) => this.logs.get(key)?.value.last ?? 0
  messageAt(key: string, number: number) {
    const found = this.logs.get(key)?.value
    return found?.messages[number - this.#firstOf(found)]
  }
  #putLog(key: string, value: LogEntry) {
    this.logs.set(key, { value, expires: this.logs.get(key)?.expires })
  }
  resetLog(key: string, last: number) {
    this.#putLog(key, { last, messages: [] })
  }
  appendTo(key: string, message: string) {
    const { last, messages } = this.logs.get(key)?.value ?? { last: 0, messages: [] }
    this.#putLog(key, { last: last + 1, messages: [...messages, message] })
  }
  trimLog(key: string, keep: { readonly messages: number; readonly bytes: number }) {
    const { messages = [], last = 0 } = this.logs.get(key)?.value ?? {}
    const isTooMuch = (kept: readonly string[]) =>
      kept.length > 1 && (kept.length > keep.messages || Buffer.byteLength(kept.join('')) > keep.bytes)
    let kept = messages
    while (isTooMuch(kept)) kept = kept.slice(1)
    this.#putLog(key, { last, messages: kept })
  }
  deleteLog(key: string) {
    this.logs.delete(key)
  }
  expireLog(key: string, expires: number) {
    const found = this.logs.get(key)
    if (found) this.logs.set(key, { ...found, expires })
    this.forgetExpired()
  }

  /** Also inside a transaction: a ttl of 0 deletes at once. */
  now = 0

  forgetExpired(now = this.now) {
    this.now = now
    for (const map of [this.records, this.sets, this.logs]) {
      for (const [key, { expires }] of map) if (expires !== undefined && expires <= now) map.delete(key)
    }
  }

  answer(query: Query, now: number) {
    if ('record' in query) return this.records.get(query.record)
    return 'log' in query ? this.#page(query) : this.#members(query, now)
  }

  #members({ sortedSet, from, to, reverse, limit }: SetQuery, now: number) {
    const all = this.membersOf(sortedSet).map(([member, score]) => ({ member, score }))
    const found = all.filter(
      ({ score }) =>
        (from === undefined || score >= scoreAt(from, now)) && (to === undefined || score <= scoreAt(to, now)),
    )
    return { members: (reverse ? found.reverse() : found).slice(0, limit), size: all.length }
  }

  #page({ log, after, bytes = Number.POSITIVE_INFINITY }: LogQuery) {
    const found = this.logs.get(log)?.value
    if (!found) return undefined
    const { last } = found
    const first = this.#firstOf(found)
    if (after > last || after < first - 1) return { last, messages: undefined }
    const messages = found.messages.slice(after - first + 1)
    const fits = (count: number) => count <= 1 || Buffer.byteLength(messages.slice(0, count).join('')) <= bytes
    let count = bytes > 0 ? messages.length : 0
    while (!fits(count)) count--
    return { last, messages: messages.slice(0, count) }
  }
}

const few = fc.constantFrom('a', '__proto__', 'ü 😀', "'\0; --")
const text = fc.constantFrom('', '1', '2', 'größer 🦆', 'x'.repeat(3_000))
const small = fc.integer({ min: -2, max: 4 })
const score = fc.oneof(
  fc.integer({ min: -2, max: 3 }),
  fc.constantFrom(0.1, -1.5),
  small.map(hours => ({ now: hours * HOUR })),
)
const values = <Value>(value: fc.Arbitrary<Value>) =>
  fc.array(fc.tuple(few, value), { maxLength: 3 }).map(entries => Object.fromEntries(entries) as Record<string, Value>)
const list = <Value>(value: fc.Arbitrary<Value>) => fc.array(value, { maxLength: 3 })
const ttl = fc.constantFrom(0, HOUR, 2 * HOUR)
const parts = <Parts>(model: { [Key in keyof Parts]: fc.Arbitrary<Parts[Key]> }) =>
  fc.record(model, { requiredKeys: [] })
const numeric = fc.constantFrom('n', 'constructor')
const amounts = fc.dictionary(numeric, small, { maxKeys: 2 })
const allowed = fc.oneof(text, fc.constant(null), fc.array(fc.option(text), { maxLength: 3 }))
/** Most steps must hold, or nothing happens. */
const seldom = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { freq: 2, nil: undefined })

const without = <Given extends object>(given: Given) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))

const recordPart = fc
  .tuple(
    parts({
      set: values(text),
      unset: list(few),
      add: amounts,
      ttl: fc.oneof(
        ttl,
        ttl.map(time => ({ new: time })),
      ),
    }),
    fc.record({
      exists: seldom(fc.boolean()),
      where: seldom(values(allowed)),
      most: seldom(amounts),
      delete: seldom(fc.boolean()),
      know: seldom(fc.constant(0)),
    }),
  )
  .map(([changes, rare]) => ({ ...changes, ...without(rare) }))

const setPart = fc
  .tuple(
    parts({ put: values(score), touch: values(score), remove: list(few), ttl }),
    fc.record({
      below: seldom(score),
      most: seldom(fc.nat(4)),
      has: seldom(list(few)),
      lacks: seldom(list(few)),
      keep: seldom(fc.nat(3)),
      delete: seldom(fc.boolean()),
    }),
  )
  .map(([changes, rare]) => ({ ...changes, ...without(rare) }))

const logPart = fc
  .tuple(
    parts({ append: list(text), keep: fc.record({ messages: fc.nat(4), bytes: fc.nat(30) }), ttl }),
    fc.record({ after: seldom(fc.nat(6)), reset: seldom(fc.nat(6)), delete: seldom(fc.boolean()) }),
  )
  .map(([changes, rare]) => ({ ...changes, ...without(rare) }))

const steps: fc.Arbitrary<readonly Step[]> = fc
  .tuple(values(recordPart), values(setPart), values(logPart))
  .map(([records, sets, logs]) => [
    ...Object.entries(records).map(([record, part]) => ({ record, ...part }) as Step),
    ...Object.entries(sets).map(([sortedSet, part]) => ({ sortedSet, ...part }) as Step),
    ...Object.entries(logs).map(([log, part]) => ({ log, ...part }) as Step),
  ])

const query: fc.Arbitrary<Query> = fc.oneof(
  few.map(record => ({ record })),
  fc
    .tuple(few, parts({ from: score, to: score, reverse: fc.boolean() }), fc.nat(4))
    .map(([sortedSet, range, limit]) => ({
      ...{ sortedSet, limit },
      ...range,
    })),
  fc.tuple(few, fc.nat(8), parts({ bytes: fc.nat(20) })).map(([log, after, size]) => ({ log, after, ...size })),
)

const actions = fc.array(
  fc.oneof(
    fc.record({ steps, durability: fc.constantFrom(undefined, 'relaxed' as const) }),
    fc.array(query, { maxLength: 4 }).map(queries => ({ queries })),
  ),
  {
    minLength: 10,
    maxLength: 40,
  },
)

/** Milliseconds. Redis derives the expiry from the time that is left, and can pause in between. The times differ by an hour or more. */
const ROUNDING = 60_000

function plain(value: unknown, times: number[]): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, part) => {
      if (key === 'expires' && typeof part === 'number') times.push(part)
      return key === 'now' || key === 'expires' ? undefined : part
    }) ?? 'null',
  )
}

function compare(found: unknown, expected: unknown) {
  const [times, expectedTimes]: [number[], number[]] = [[], []]
  expect(plain(found, times)).to.deep.equal(plain(expected, expectedTimes))
  expect(times.length).to.equal(expectedTimes.length)
  for (const [index, time] of times.entries()) expect(time).to.be.closeTo(expectedTimes[index] ?? 0, ROUNDING)
}

/** Runs random sequences, each in a new partition. */
export async function compareWithModel(store: Store, runs: number): Promise<void> {
  let partitions = 0
  const property = fc.asyncProperty(actions, async sequence => {
    const partition = `model '\0 ${++partitions}`
    const model = new Model()
    for (const action of sequence) {
      if ('steps' in action) {
        const outcome = await store.transact(partition, action.steps, action.durability)
        model.forgetExpired(outcome.now)
        compare(outcome, applySteps(model, action.steps, outcome.now))
        model.forgetExpired()
      } else {
        const answers = await store.read(partition, action.queries)
        const expected = action.queries.map(one => model.answer(one, Date.now()))
        compare(answers, expected)
      }
    }
  })
  await fc.assert(property, { numRuns: runs })
}
