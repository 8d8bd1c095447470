// Task rows and records.
import type { DatabaseSync } from 'node:sqlite'
import type { TaskRecord, TaskRefusal, TaskRoom, TaskState, TaskSummary } from '../../../core/transport.ts'
import { SHARE, type StoreBounds } from './bounds.ts'
import { bound, textOf } from './texts.ts'

export interface FoundTask {
  readonly id: number
  readonly name: unknown
  readonly holder: unknown
  readonly owner: unknown
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

/** Without the large columns, which are last in a row and are then not read. */
export const SMALL = `SELECT id, name, holder, owner, queue, state, created, updated, until, leased, version, fence, runs, open,
  size, note FROM tasks`

/** Bytes of a task besides its texts. */
export const TASK_COST = 1_200

export const bytesOf = (...texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

// Not from core, whose modules this thread would load.
export const hasEnded = (state: TaskState): boolean => state !== 'queued' && state !== 'running'

export function summaryOf(row: FoundTask): TaskSummary {
  const { id: serial, state, created: createdAt, updated: updatedAt, until, version, fence, runs, open, note } = row
  const names = { id: textOf(row.name), holder: textOf(row.holder), owner: textOf(row.owner), queue: textOf(row.queue) }
  const summary = { ...names, serial, state, createdAt, updatedAt, until, version, fence, runs, open }
  return note === null ? summary : { ...summary, note: textOf(note) }
}

export function taskParts(db: DatabaseSync, { maxSize }: Pick<StoreBounds, 'maxSize'>) {
  const most = { all: Math.floor(maxSize * SHARE.tasks), each: Math.floor(maxSize * SHARE.tasksOfHolder) }
  const sql = {
    find: db.prepare(`${SMALL} WHERE name = ? AND until > ?`),
    whole: db.prepare('SELECT * FROM tasks WHERE id = ?'),
    tally: db.prepare("SELECT bytes FROM tallies WHERE name = 'tasks'"),
    held: db.prepare('SELECT sum(size) AS n FROM tasks WHERE holder = ?'),
    over: db.prepare("UPDATE tasks SET body = '', open = 0, size = size + ? WHERE id = ?"),
    forget: db.prepare('DELETE FROM task_questions WHERE task = ?'),
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
  function refusalOf(holder: unknown, bytes: number, room?: TaskRoom): TaskRefusal | undefined {
    if (bytes <= 0) return undefined
    const held = Number(sql.held.get(holder as string)?.['n'] ?? 0)
    if (held + bytes > Math.min(most.each, room?.bytesPerHolder ?? most.each)) return 'holder'
    return Number(sql.tally.get()?.['bytes'] ?? 0) + bytes > most.all ? 'full' : undefined
  }
  function growthByEnding({ size, name, holder, owner, queue, note }: FoundTask, outcome = ''): number {
    const texts = [name, holder, owner, queue, note ?? ''].map(textOf)
    return TASK_COST + bytesOf(...texts, outcome) - size
  }
  /** Deletes the parts of an ended task that are no longer needed. */
  function forget(found: FoundTask, outcome?: string) {
    sql.over.run(growthByEnding(found, outcome), found.id)
    sql.forget.run(found.id)
  }
  return { find, read, refusalOf, growthByEnding, forget }
}

export type TaskParts = ReturnType<typeof taskParts>
