// Tasks as records of a store: `t:<id>` has the small fields, `w:<id>` the body and the requests, `o:<id>` the outcome.
import { hash } from 'node:crypto'
import type { Fields } from '../../../core/store.ts'
import type { NewTask, TaskRecord, TaskRequest, TaskState, TaskSummary } from './task-store.ts'

/** Returns a digest for keys: ids are credentials, holders are users, and queues can be long. */
const digest = (text: string, length: number) => hash('sha256', text, 'base64url').slice(0, length)

export const keyOf = (id: string) => digest(id, 22)
export const nameOf = (holderOrQueue: string) => digest(holderOrQueue, 16)

const TASK_COST = 1_200
const REQUEST_COST = 100
/** Maximum number of requests; a larger number in the store is invalid. */
const MAX_REQUESTS = 100

export const sizeOf = (...texts: ReadonlyArray<string | undefined>): number =>
  texts.reduce((sum, text = '') => sum + Buffer.byteLength(text), 0)

export const sizeOfTask = ({ id, holder, owner, queue, note }: Omit<NewTask, 'ttl' | 'body'> & { note?: string }) =>
  TASK_COST + sizeOf(id, holder, owner, queue, note)

export const sizeOfRequest = (key: string, text: string) => REQUEST_COST + sizeOf(key, text)

export interface TaskFacts extends TaskSummary {
  readonly summary: TaskSummary
  readonly key: string
  readonly holderKey: string
  readonly queueKey: string
  /** The bytes as counted for the holder. */
  readonly bytes: number
  readonly asked: number
  /** Counts lease renewals. */
  readonly beats: number
  readonly claim: string | undefined
}

export function readFacts(fields: Fields): TaskFacts {
  const text = (name: string) => fields[name] ?? ''
  const number = (name: string) => Number(fields[name] ?? 0)
  const note = fields['note']
  const summary: TaskSummary = {
    id: text('id'),
    holder: text('holder'),
    owner: text('owner'),
    queue: text('queue'),
    serial: number('serial'),
    state: text('state') as TaskState,
    createdAt: number('created'),
    updatedAt: number('updated'),
    until: number('until'),
    version: number('version'),
    fence: number('fence'),
    runs: number('runs'),
    open: number('open'),
    ...(note !== undefined && { note }),
  }
  return {
    ...summary,
    summary,
    key: keyOf(summary.id),
    holderKey: nameOf(summary.holder),
    queueKey: nameOf(summary.queue),
    bytes: number('bytes'),
    asked: Math.min(number('asked') || 0, MAX_REQUESTS),
    beats: number('beats'),
    claim: fields['claim'],
  }
}

export const requestField = (number: number, { key, text }: TaskRequest) => ({
  [`q:${number}`]: JSON.stringify([key, text]),
})

export const responseField = (number: number) => `a:${number}`

export function readRequests({ asked }: TaskFacts, work: Fields): TaskRequest[] {
  return Array.from({ length: asked }, (_, index) => {
    const [key, text] = JSON.parse(work[`q:${index + 1}`] ?? '["",""]')
    const response = work[responseField(index + 1)]
    return response === undefined ? { key, text } : { key, text, response }
  })
}

export function readTask(facts: TaskFacts, work: Fields = {}, outcome?: Fields): TaskRecord {
  const whole = { ...facts.summary, body: work['body'] ?? '', requests: readRequests(facts, work) }
  const text = outcome?.['outcome']
  return text === undefined ? whole : { ...whole, outcome: text }
}
