// The in-memory store, for one process.
import { HostError } from '../http/errors.ts'
import { applySteps, type PartitionState, type RecordState, scoreAt } from './apply-steps.ts'
import type { LogPage, LogQuery, Members, Query, ReadAnswers, SetQuery, Store } from './store.ts'

/** Options of `createMemoryStore`. */
export interface MemoryStoreSettings {
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly now?: () => number
  /** Largest size, about; above it writes reject with `unavailable`. Default: no limit. */
  readonly maxBytes?: number
  /** Evicts the least recently used partitions above `maxBytes` instead. */
  readonly evicts?: boolean
  /** The content of an earlier store. */
  readonly dump?: MemoryDump
}

/** Records and sets as JSON, by partition. */
export type MemoryDump = ReadonlyArray<readonly [partition: string, content: MemoryContent]>

interface MemoryContent {
  readonly records: ReadonlyArray<readonly [key: string, record: RecordState]>
  readonly sets: ReadonlyArray<
    readonly [key: string, scores: ReadonlyArray<readonly [string, number]>, expires?: number | null | undefined]
  >
}

export interface MemoryStore extends Store {
  /** Returns the content without logs. */
  dump(): MemoryDump
}

interface SortedSet {
  readonly scores: Map<string, number>
  /** The members by score, then by text. */
  readonly order: string[]
  expires: number | undefined
}

interface Log {
  messages: string[]
  first: number
  bytes: number
  expires: number | undefined
}

/** The cost of an entry and of a partition besides their texts, bytes. */
const ENTRY_COST = 100
const PARTITION_COST = 700
/** Entries that one transaction checks for expiry. */
const SWEPT = 4
/** Interval between searches for all expired entries, milliseconds. */
const SWEEP_INTERVAL = 1_000

const costOf = (text: string) => 2 * text.length

const costOfRecord = ({ fields }: RecordState) =>
  Object.entries(fields).reduce((sum, [field, value]) => sum + costOf(field) + costOf(value), ENTRY_COST)

/** Returns the position of the first member that does not sort before this one. */
function positionOf({ scores, order }: SortedSet, score: number, member = ''): number {
  let low = 0
  let high = order.length
  while (low < high) {
    const middle = (low + high) >> 1
    const other = order[middle] ?? ''
    const otherScore = scores.get(other) ?? 0
    if (otherScore < score || (otherScore === score && other < member)) low = middle + 1
    else high = middle
  }
  return low
}

class MemoryPartition implements PartitionState {
  readonly #records = new Map<string, RecordState>()
  readonly #sets = new Map<string, SortedSet>()
  readonly #logs = new Map<string, Log>()
  /** The time of the current operation. */
  now = 0
  bytes = 0

  get isEmpty(): boolean {
    return this.#records.size === 0 && this.#sets.size === 0 && this.#logs.size === 0
  }

  dump(): MemoryContent {
    const sets = [...this.#sets].map(([key, { scores, expires }]) => [key, [...scores], expires] as const)
    return { records: [...this.#records], sets }
  }

  load({ records, sets }: MemoryContent) {
    for (const [key, record] of records) this.putRecord(key, record)
    for (const [key, scores, expires] of sets) {
      for (const [member, score] of scores) this.putMember(key, member, score)
      if (expires != null) this.expireSet(key, expires)
    }
  }

  /** Each step removes one entry if it has expired. */
  *sweep(): Generator<() => void> {
    for (const key of this.#records.keys()) yield () => void this.record(key)
    for (const key of this.#sets.keys()) yield () => void this.#setOf(key)
    for (const key of this.#logs.keys()) yield () => void this.#logOf(key)
  }

  #isOver(expires: number | undefined): boolean {
    return expires !== undefined && expires <= this.now
  }

  record(key: string): RecordState | undefined {
    const found = this.#records.get(key)
    if (!found || !this.#isOver(found.expires)) return found
    this.putRecord(key, undefined)
    return undefined
  }

  putRecord(key: string, record: RecordState | undefined) {
    const before = this.#records.get(key)
    if (before) this.bytes -= costOf(key) + costOfRecord(before)
    if (!record || this.#isOver(record.expires)) {
      this.#records.delete(key)
      return
    }
    this.bytes += costOf(key) + costOfRecord(record)
    this.#records.set(key, record)
  }

  #setOf(key: string): SortedSet | undefined {
    const found = this.#sets.get(key)
    if (!found || !this.#isOver(found.expires)) return found
    this.deleteSet(key)
    return undefined
  }

  scoreOf(key: string, member: string): number | undefined {
    return this.#setOf(key)?.scores.get(member)
  }

  count(key: string, from: number): number {
    const set = this.#setOf(key)
    if (!set) return 0
    return from === Number.NEGATIVE_INFINITY ? set.scores.size : set.scores.size - positionOf(set, from)
  }

  putMember(key: string, member: string, score: number) {
    let set = this.#setOf(key)
    if (!set) {
      set = { scores: new Map(), order: [], expires: undefined }
      this.#sets.set(key, set)
      this.bytes += costOf(key) + ENTRY_COST
    }
    const before = set.scores.get(member)
    if (before === score) return
    if (before === undefined) this.bytes += costOf(member) + ENTRY_COST
    else set.order.splice(positionOf(set, before, member), 1)
    set.order.splice(positionOf(set, score, member), 0, member)
    set.scores.set(member, score)
  }

  removeMember(key: string, member: string) {
    const set = this.#setOf(key)
    const score = set?.scores.get(member)
    if (!set || score === undefined) return
    set.order.splice(positionOf(set, score, member), 1)
    set.scores.delete(member)
    this.bytes -= costOf(member) + ENTRY_COST
    if (set.scores.size === 0) this.deleteSet(key)
  }

  removeLowest(key: string, count: number) {
    const set = this.#setOf(key)
    if (set && count > 0) for (const member of set.order.slice(0, count)) this.removeMember(key, member)
  }

  deleteSet(key: string) {
    const set = this.#sets.get(key)
    if (!set) return
    for (const member of set.scores.keys()) this.bytes -= costOf(member) + ENTRY_COST
    this.bytes -= costOf(key) + ENTRY_COST
    this.#sets.delete(key)
  }

  expireSet(key: string, at: number) {
    const set = this.#setOf(key)
    if (set) set.expires = at
  }

  members({ sortedSet, from, to, reverse = false, limit }: SetQuery): Members {
    const { now } = this
    const set = this.#setOf(sortedSet)
    if (!set) return { members: [], size: 0, now }
    const { order } = set
    const start = from === undefined ? 0 : positionOf(set, scoreAt(from, now))
    const highest = to === undefined ? Number.POSITIVE_INFINITY : scoreAt(to, now)
    const members: Array<{ member: string; score: number }> = []
    const step = reverse ? -1 : 1
    for (let at = reverse ? order.length - 1 : start; at >= start && at < order.length; at += step) {
      const member = order[at] ?? ''
      const score = set.scores.get(member) ?? 0
      if (score > highest) {
        if (reverse) continue
        break
      }
      if (members.length >= limit) break
      members.push({ member, score })
    }
    return { members, size: order.length, now }
  }

  #logOf(key: string): Log | undefined {
    const found = this.#logs.get(key)
    if (!found || !this.#isOver(found.expires)) return found
    this.deleteLog(key)
    return undefined
  }

  lastOf(key: string): number {
    const found = this.#logOf(key)
    return found ? found.first + found.messages.length - 1 : 0
  }

  messageAt(key: string, number: number): string | undefined {
    const found = this.#logOf(key)
    return found?.messages[number - found.first]
  }

  resetLog(key: string, last: number) {
    const expires = this.#logOf(key)?.expires
    this.deleteLog(key)
    this.#logs.set(key, { messages: [], first: last + 1, bytes: 0, expires })
    this.bytes += costOf(key) + ENTRY_COST
  }

  appendTo(key: string, message: string) {
    if (!this.#logs.has(key)) this.resetLog(key, 0)
    const log = this.#logs.get(key) as Log
    log.messages.push(message)
    log.bytes += Buffer.byteLength(message)
    this.bytes += costOf(message) + ENTRY_COST
  }

  trimLog(key: string, keep: { readonly messages: number; readonly bytes: number }) {
    const log = this.#logOf(key)
    if (!log) return
    let removed = 0
    while (
      log.messages.length - removed > 1 &&
      (log.messages.length - removed > keep.messages || log.bytes > keep.bytes)
    ) {
      const message = log.messages[removed++] ?? ''
      log.bytes -= Buffer.byteLength(message)
      this.bytes -= costOf(message) + ENTRY_COST
    }
    if (removed === 0) return
    for (let index = 0; index < removed; index++) log.messages.shift()
    log.first += removed
  }

  deleteLog(key: string) {
    const log = this.#logs.get(key)
    if (!log) return
    for (const message of log.messages) this.bytes -= costOf(message) + ENTRY_COST
    this.bytes -= costOf(key) + ENTRY_COST
    this.#logs.delete(key)
  }

  expireLog(key: string, at: number) {
    const log = this.#logOf(key)
    if (log) log.expires = at
  }

  page({ log: key, after, bytes = Number.POSITIVE_INFINITY }: LogQuery): LogPage | undefined {
    const log = this.#logOf(key)
    if (!log) return undefined
    const last = log.first + log.messages.length - 1
    if (after > last || after < log.first - 1) return { last, messages: undefined }
    const messages: string[] = []
    let sum = 0
    for (let at = after + 1 - log.first; at < log.messages.length && bytes > 0; at++) {
      const message = log.messages[at] ?? ''
      sum += Buffer.byteLength(message)
      if (messages.length > 0 && sum > bytes) break
      messages.push(message)
    }
    return { last, messages }
  }
}

/** Creates a store in the memory of this process. */
export function createMemoryStore(settings: MemoryStoreSettings = {}): MemoryStore {
  const { now = Date.now, maxBytes = Number.POSITIVE_INFINITY, evicts = false } = settings
  const partitions = new Map<string, MemoryPartition>()
  let bytes = 0
  let sweeping = sweep()
  let sweepAt = Number.NEGATIVE_INFINITY

  function use<Value>(name: string, work: (partition: MemoryPartition) => Value): Value {
    const found = partitions.get(name)
    const partition = found ?? new MemoryPartition()
    partition.now = now()
    const before = found ? found.bytes : -PARTITION_COST
    const result = work(partition)
    const isEmpty = partition.isEmpty
    if (!isEmpty || found) bytes += partition.bytes - before - (isEmpty ? PARTITION_COST : 0)
    if (evicts || isEmpty) partitions.delete(name)
    if (!isEmpty) partitions.set(name, partition)
    return result
  }

  function* sweep(): Generator<void> {
    for (const [name, partition] of partitions) {
      for (const check of partition.sweep()) {
        if (partitions.get(name) !== partition) break
        const before = partition.bytes
        partition.now = now()
        check()
        bytes += partition.bytes - before
        yield
      }
      if (partitions.get(name) !== partition || !partition.isEmpty) continue
      partitions.delete(name)
      bytes -= PARTITION_COST
    }
  }

  /** Each write removes some expired entries, so that they do not accumulate. */
  function sweepSome() {
    for (let index = 0; index < SWEPT; index++) {
      if (!sweeping.next().done) continue
      sweeping = sweep()
      return
    }
  }

  function sweepAll() {
    if (now() < sweepAt) return
    sweepAt = now() + SWEEP_INTERVAL
    for (const _ of sweep());
  }

  function makeRoom() {
    if (bytes > maxBytes) sweepAll()
    if (bytes <= maxBytes) return
    if (!evicts) throw new HostError('unavailable', { detail: 'too much is stored at the moment; try again later' })
    for (const [name, partition] of partitions) {
      if (bytes <= maxBytes) return
      partitions.delete(name)
      bytes -= partition.bytes + PARTITION_COST
    }
  }

  for (const [name, content] of settings.dump ?? []) use(name, partition => partition.load(content))

  return {
    shared: false,
    dump: () => [...partitions].map(([name, partition]) => [name, partition.dump()] as const),
    transact(name, steps) {
      sweepSome()
      if (steps.some(step => ['set', 'put', 'append', 'add'].some(key => key in step))) makeRoom()
      return use(name, partition => applySteps(partition, steps, partition.now))
    },
    read<const Queries extends readonly Query[]>(name: string, queries: Queries) {
      const results = use(name, partition =>
        queries.map(query => {
          if ('log' in query) return partition.page(query)
          if ('sortedSet' in query) return partition.members(query)
          const found = partition.record(query.record)
          return found && { ...found, now: partition.now }
        }),
      )
      return results as unknown as ReadAnswers<Queries>
    },
  }
}
