// Executes the steps of a transaction, for stores that evaluate them in JavaScript.
import type { Fields, Found, LogStep, Outcome, RecordStep, Score, SetStep, Step } from './store.ts'

/** A record as adapters keep it. */
export interface RecordState {
  readonly version: number
  readonly fields: Fields
  readonly expires: number | undefined
}

/** One partition inside a transaction. Expired records, sets and logs do not exist. */
export interface PartitionState {
  record(key: string): RecordState | undefined
  /** Stores a record; undefined deletes it. */
  putRecord(key: string, record: RecordState | undefined): void
  scoreOf(set: string, member: string): number | undefined
  count(set: string, from: number): number
  putMember(set: string, member: string, score: number): void
  removeMember(set: string, member: string): void
  /** Removes the members with the lowest scores; none for a negative number. */
  removeLowest(set: string, count: number): void
  deleteSet(set: string): void
  expireSet(set: string, at: number): void
  /** The number of the last message. 0: none. */
  lastOf(log: string): number
  messageAt(log: string, number: number): string | undefined
  /** Empties the log. The next message gets the number `last + 1`. */
  resetLog(log: string, last: number): void
  appendTo(log: string, message: string): void
  trimLog(log: string, keep: { readonly messages: number; readonly bytes: number }): void
  deleteLog(log: string): void
  expireLog(log: string, at: number): void
}

const LOWEST = Number.NEGATIVE_INFINITY

/** Converts a score to a number by the clock of the store. */
export const scoreAt = (score: Score, now: number): number => (typeof score === 'number' ? score : now + score.now)

/** Reads own fields only, because a field can have the name of a member of `Object.prototype`. */
const fieldIn = (fields: Fields, field: string): string | null =>
  Object.hasOwn(fields, field) ? (fields[field] ?? null) : null

const amountIn = (add: Readonly<Record<string, number>>, field: string) =>
  Object.hasOwn(add, field) ? (add[field] ?? 0) : 0

const numberIn = (fields: Fields, field: string) => Number(fieldIn(fields, field) ?? 0)

function recordHolds(found: RecordState | undefined, { exists, version, where, most, add = {} }: RecordStep) {
  if (exists !== undefined && exists !== (found !== undefined)) return false
  if (version !== undefined && version !== (found?.version ?? 0)) return false
  const fields = found?.fields ?? NO_FIELDS
  for (const [field, allowed] of where ? Object.entries(where) : []) {
    const value = fieldIn(fields, field)
    if (!(Array.isArray(allowed) ? allowed.includes(value) : allowed === value)) return false
  }
  return (
    !most || Object.entries(most).every(([field, limit]) => numberIn(fields, field) + amountIn(add, field) <= limit)
  )
}

function changeRecord(state: PartitionState, step: RecordStep, now: number): Found {
  const found = state.record(step.record)
  if (step.delete) {
    if (found) state.putRecord(step.record, undefined)
    return { version: 0, ...(step.know !== undefined && found ? { fields: found.fields } : {}) }
  }
  const fields = changeFields(found?.fields ?? NO_FIELDS, step)
  const changes = !found || (fields !== found.fields && !isSame(found.fields, fields))
  if (!found && Object.keys(fields).length === 0) return { version: 0 }
  const version = found ? found.version + (changes ? 1 : 0) : now
  const ttl = typeof step.ttl === 'object' ? (found ? undefined : step.ttl.new) : step.ttl
  const expires = ttl === undefined ? found?.expires : now + ttl
  if (changes || expires !== found?.expires) state.putRecord(step.record, { version, fields, expires })
  return {
    version,
    ...(step.know !== undefined && step.know !== version ? { fields } : {}),
    ...(expires === undefined ? {} : { expires }),
  }
}

const NO_FIELDS: Fields = Object.freeze({})

function changeFields(fields: Fields, { set, unset = [], add }: RecordStep): Fields {
  if (!set && !add && unset.length === 0) return fields
  const kept: Record<string, string> = { ...fields, ...set }
  for (const field of unset) delete kept[field]
  if (!add) return kept
  const added = Object.entries(add).map(([field, amount]) => [field, String(numberIn(kept, field) + amount)])
  return { ...kept, ...Object.fromEntries(added) }
}

function isSame(one: Fields, other: Fields) {
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every(name => one[name] === other[name])
}

function setHolds(state: PartitionState, { sortedSet: set, below, most, has = [], lacks = [] }: SetStep, now: number) {
  const from = below === undefined ? LOWEST : scoreAt(below, now)
  if (most !== undefined && state.count(set, from) > most) return false
  const isIn = (member: string) => (state.scoreOf(set, member) ?? Number.NaN) >= from
  return has.every(isIn) && !lacks.some(isIn)
}

function changeSet(state: PartitionState, step: SetStep, now: number): Found {
  const { sortedSet: set, below, put = {}, touch = {}, remove = [], keep, ttl } = step
  if (step.delete) state.deleteSet(set)
  else {
    if (below !== undefined) state.removeLowest(set, state.count(set, LOWEST) - state.count(set, scoreAt(below, now)))
    for (const member of remove) state.removeMember(set, member)
    for (const [member, score] of Object.entries(touch)) {
      if (state.scoreOf(set, member) !== undefined) state.putMember(set, member, scoreAt(score, now))
    }
    for (const [member, score] of Object.entries(put)) state.putMember(set, member, scoreAt(score, now))
    if (keep !== undefined) state.removeLowest(set, state.count(set, LOWEST) - keep)
    if (ttl !== undefined) state.expireSet(set, now + ttl)
  }
  return { size: state.count(set, LOWEST) }
}

const isRepeat = (state: PartitionState, log: string, after: number, messages: readonly string[]) =>
  messages.length > 0 && messages.every((message, index) => state.messageAt(log, after + 1 + index) === message)

function logHolds(state: PartitionState, { log, after, append = [], reset }: LogStep) {
  if (after === undefined || reset !== undefined) return true
  return state.lastOf(log) === after || isRepeat(state, log, after, append)
}

function changeLog(state: PartitionState, step: LogStep, now: number): Found {
  const { log, after, append = [], reset, keep, ttl } = step
  if (step.delete) {
    state.deleteLog(log)
    return { last: 0 }
  }
  if (reset !== undefined) state.resetLog(log, reset)
  const last = state.lastOf(log)
  if (reset !== undefined || after === undefined || after === last) {
    for (const message of append) state.appendTo(log, message)
    if (keep && append.length > 0) state.trimLog(log, keep)
  }
  if (ttl !== undefined) state.expireLog(log, now + ttl)
  return { last: state.lastOf(log) }
}

function holds(state: PartitionState, step: Step, now: number) {
  if ('record' in step) return recordHolds(state.record(step.record), step)
  return 'log' in step ? logHolds(state, step) : setHolds(state, step, now)
}

function foundBy(state: PartitionState, step: Step): Found {
  if ('sortedSet' in step) return { size: state.count(step.sortedSet, LOWEST) }
  if ('log' in step) return { last: state.lastOf(step.log) }
  const found = state.record(step.record)
  if (!found) return { version: 0, fields: {} }
  const { version, fields, expires } = found
  return { version, fields, ...(expires === undefined ? {} : { expires }) }
}

function change(state: PartitionState, step: Step, now: number): Found {
  if ('record' in step) return changeRecord(state, step, now)
  return 'log' in step ? changeLog(state, step, now) : changeSet(state, step, now)
}

/** Checks all conditions, then applies all steps. */
export function applySteps(state: PartitionState, steps: readonly Step[], now: number): Outcome {
  for (const [index, step] of steps.entries()) {
    if (!holds(state, step, now)) return { done: false, step: index, found: foundBy(state, step), now }
  }
  return { done: true, results: steps.map(step => change(state, step, now)), now }
}
