// A task as it stands in the file, and as the slot gives it. For tasks.ts and task-runs.ts.
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

/** All of it but what may be large, which stands behind it in a row and is not read then. */
export const SMALL = `SELECT id, name, holder, owner, queue, state, created, updated, until, leased, version, fence, runs, open,
  size, note FROM tasks LEFT JOIN task_owners ON task = id`

/** What a task costs beside its texts, bytes. */
export const TASK_COST = 1_200

export const bytesOf = (...texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

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
    whole: db.prepare('SELECT *, (SELECT owner FROM task_owners WHERE task = id) AS owner FROM tasks WHERE id = ?'),
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
  /** Why there is no room for so many bytes more of this holder; undefined where there is. */
  function refusalOf(holder: unknown, bytes: number, room?: TaskRoom): TaskRefusal | undefined {
    if (bytes <= 0) return undefined
    const held = Number(sql.held.get(holder as string)?.['n'] ?? 0)
    if (held + bytes > Math.min(most.each, room?.bytesPerHolder ?? most.each)) return 'holder'
    return Number(sql.tally.get()?.['bytes'] ?? 0) + bytes > most.all ? 'full' : undefined
  }
  /** By how many bytes it grows where it is over. */
  function growthByEnding({ size, name, holder, owner, queue, note }: FoundTask, outcome = ''): number {
    const texts = [name, holder, owner, queue, note ?? ''].map(textOf)
    return TASK_COST + bytesOf(...texts, outcome) - size
  }
  /** What nobody needs of a task that is over. */
  function forget(found: FoundTask, outcome?: string) {
    sql.over.run(growthByEnding(found, outcome), found.id)
    sql.forget.run(found.id)
  }
  return { find, read, refusalOf, growthByEnding, forget }
}

export type TaskParts = ReturnType<typeof taskParts>
