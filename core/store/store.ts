// The storage primitive: partitions of records, sorted sets and logs, changed by one atomic operation.

import type { Bus } from './bus.ts'

type Awaitable<Value> = Value | Promise<Value>

/**
 * Stores records, sorted sets and logs in partitions. Everything in one partition changes atomically; nothing spans partitions.
 * Keys, members, fields and messages are text. Each key names a record, a set and a log independently.
 *
 * Both methods are one round trip or one transaction of the database. They reject with the HostError `unavailable` if the store
 * does not respond (the outcome is unknown) or is full (nothing is written). Resolved changes are durable. A change that
 * has rejected is never applied later than the store's own time limit.
 */
export interface Store {
  /** `true`: all nodes; `host`: all processes of this host; `false`: this process only, which then stores no sessions. */
  readonly shared: boolean | 'host'
  /**
   * Applies all steps, or none if a condition of one step does not hold. A key of each kind occurs in one step at most.
   * `relaxed`: a power cut or a crash of the database can lose the change; for facts that end with a request or a lease.
   */
  transact(partition: string, steps: readonly Step[], durability?: 'relaxed'): Awaitable<Outcome>
  /** Runs the queries in order, against one consistent state. */
  read<const Queries extends readonly Query[]>(partition: string, queries: Queries): Awaitable<ReadAnswers<Queries>>
  /** The bus of the nodes that share the store. A plugin's store without it is for one node. */
  readonly bus?: Bus
  /** Calls the listener when the store responds again after an outage. Recent changes can be lost. */
  onReturn?(listener: () => void): void
}

/** A part of a transaction. */
export type Step = RecordStep | SetStep | LogStep

/** Fields of a record. */
export type Fields = Readonly<Record<string, string>>

/**
 * Checks and changes a record. A new record has the time of the store as its version, so that versions also grow after a
 * deletion or a loss. A step that changes no field keeps the version.
 */
export interface RecordStep {
  readonly record: string
  /** Condition: the record exists (true) or not (false). */
  readonly exists?: boolean
  /** Condition: the version of the record; 0: it does not exist. */
  readonly version?: number
  /** Condition: the value of each field; null: the field is absent. A list allows several values. */
  readonly where?: Readonly<Record<string, string | null | ReadonlyArray<string | null>>>
  /** Condition: the largest number in each field, after `add`. */
  readonly most?: Readonly<Record<string, number>>
  readonly set?: Fields
  readonly unset?: readonly string[]
  /** Adds integers to fields. Absent fields are 0. */
  readonly add?: Readonly<Record<string, number>>
  readonly delete?: boolean
  /** Milliseconds from now. `{ new }`: only for a record that this step creates. Default: unchanged, forever for a new record. */
  readonly ttl?: number | { readonly new: number }
  /** Returns the fields if the version after the step is not this one; 0: always. Default: no fields. */
  readonly know?: number
}

/** A number, or milliseconds from now by the clock of the store. */
export type Score = number | { readonly now: number }

/** Checks and changes a sorted set. Conditions apply after `below`, before the other changes. */
export interface SetStep {
  readonly sortedSet: string
  /** Removes members with a smaller score. */
  readonly below?: Score
  /** Condition: the largest number of members. */
  readonly most?: number
  /** Condition: these members are in the set. */
  readonly has?: readonly string[]
  /** Condition: these members are not in the set. */
  readonly lacks?: readonly string[]
  /** Adds members, or changes their scores. */
  readonly put?: Readonly<Record<string, Score>>
  /** Changes the scores of members that are in the set. */
  readonly touch?: Readonly<Record<string, Score>>
  readonly remove?: readonly string[]
  /** Keeps this number of members, those with the highest scores. */
  readonly keep?: number
  readonly delete?: boolean
  /** Milliseconds from now, for the whole set. Default: unchanged, forever for a new set. */
  readonly ttl?: number
}

/** Checks and changes a log. Messages are numbered from 1 without gaps. */
export interface LogStep {
  readonly log: string
  /**
   * Condition: the number before the first new message is the last one of the log. A repeated step, whose messages are already
   * stored under these numbers, holds and changes nothing but the ttl.
   */
  readonly after?: number
  readonly append?: readonly string[]
  /** Empties the log first. The next message gets this number plus one. Replaces the condition `after`. */
  readonly reset?: number
  /** Removes the oldest messages above these limits. The newest message is always kept. Bytes are UTF-8. */
  readonly keep?: { readonly messages: number; readonly bytes: number }
  readonly delete?: boolean
  /** Milliseconds from now. Default: unchanged, forever for a new log. */
  readonly ttl?: number
}

/** The result of a transaction. `now`: milliseconds since the epoch by the clock of the store. */
export type Outcome =
  | { readonly done: true; readonly results: readonly Found[]; readonly now: number }
  /** Nothing has changed. `step`: the index of the step whose condition does not hold; `found`: its key before the transaction. */
  | { readonly done: false; readonly step: number; readonly found: Found; readonly now: number }

/** The state after a step, or the state that a failed step found. A missing record has version 0; a missing set or log is empty. */
export interface Found {
  /** The version of a record. */
  readonly version?: number
  /** The fields of a record: always for a failed step, otherwise according to `know`. */
  readonly fields?: Fields
  /** The expiry time by the clock of the store. Undefined: never. */
  readonly expires?: number
  /** The number of members of a set. */
  readonly size?: number
  /** The number of the last message of a log. */
  readonly last?: number
}

/** A part of a read. */
export type Query = RecordQuery | SetQuery | LogQuery

/** Reads a record. */
export interface RecordQuery {
  readonly record: string
}

/** Members in ascending order of scores, then by text. Expired sets are empty. */
export interface SetQuery {
  readonly sortedSet: string
  /** The lowest and highest score. Default: no limit. */
  readonly from?: Score
  readonly to?: Score
  readonly reverse?: boolean
  /** The maximum number of members. */
  readonly limit: number
}

/** Reads messages of a log. */
export interface LogQuery {
  readonly log: string
  /** The number of the last known message. */
  readonly after: number
  /** Maximum UTF-8 bytes, with at least one message. 0: no messages. Default: no limit. */
  readonly bytes?: number
}

/** A stored record. */
export interface StoredRecord {
  readonly version: number
  readonly fields: Fields
  readonly expires: number | undefined
  /** The current time by the clock of the store. */
  readonly now: number
}

/** Members of a sorted set. */
export interface Members {
  readonly members: ReadonlyArray<{ readonly member: string; readonly score: number }>
  /** The size of the whole set. */
  readonly size: number
  readonly now: number
}

/** Messages of a log. */
export interface LogPage {
  /** The number of the last message; `reset` counts as one. */
  readonly last: number
  /** Undefined if messages between `after` and the first stored message are gone, or `after` is above `last`. */
  readonly messages: readonly string[] | undefined
}

type AnswerOf<One> = One extends RecordQuery
  ? StoredRecord | undefined
  : One extends SetQuery
    ? Members
    : LogPage | undefined

/** The results of `read`, in the order of the queries. */
export type ReadAnswers<Queries extends readonly Query[]> = {
  readonly [Index in keyof Queries]: AnswerOf<Queries[Index]>
}
