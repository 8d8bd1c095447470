// A task as it stands in the file, and as the slot gives it. For tasks.ts and task-runs.ts.
import type { DatabaseSync } from 'node:sqlite'
import type { TaskRecord, TaskState, TaskSummary } from '../../../core/transport.ts'
import { bound, textOf } from './texts.ts'

export interface FoundTask {
  readonly id: number
  readonly name: unknown
  readonly holder: unknown
  readonly queue: unknown
  readonly state: TaskState
  readonly created: number
  readonly updated: number
  readonly until: number
  readonly leased: number
  readonly version: number
  readonly fence: number
  readonly runs: number
  readonly open: number
  readonly size: number
  readonly note: unknown
  readonly body: unknown
  readonly outcome: unknown
}

/** All of it but what may be large. */
export const SMALL =
  'id, name, holder, queue, state, created, updated, until, leased, version, fence, runs, open, size, note'

export const bytesOf = (...texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

export const hasEnded = (state: TaskState): boolean => state !== 'queued' && state !== 'running'

export function summaryOf(row: FoundTask): TaskSummary {
  const { id: serial, state, created: createdAt, updated: updatedAt, until, version, fence, runs, open, note } = row
  const names = { id: textOf(row.name), holder: textOf(row.holder), queue: textOf(row.queue) }
  const summary = { ...names, serial, state, createdAt, updatedAt, until, version, fence, runs, open }
  return note === null ? summary : { ...summary, note: textOf(note) }
}

export function taskParts(db: DatabaseSync) {
  const sql = {
    find: db.prepare(`SELECT ${SMALL} FROM tasks WHERE name = ? AND until > ?`),
    whole: db.prepare('SELECT * FROM tasks WHERE id = ?'),
    questions: db.prepare('SELECT name, question, answer FROM task_questions WHERE task = ? ORDER BY id'),
  }
  const find = (id: string) => sql.find.get(bound(id), Date.now()) as unknown as FoundTask | undefined
  function read(id: number): TaskRecord {
    const row = sql.whole.get(id) as unknown as FoundTask
    const questions = sql.questions.all(id).map(({ name, question, answer }) => {
      const asked = { key: textOf(name), text: textOf(question) }
      return answer === null ? asked : { ...asked, answer: textOf(answer) }
    })
    const whole = { ...summaryOf(row), body: textOf(row.body), questions }
    return row.outcome === null ? whole : { ...whole, outcome: textOf(row.outcome) }
  }
  return { find, read }
}

export type TaskParts = ReturnType<typeof taskParts>
