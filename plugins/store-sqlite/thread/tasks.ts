// Operations on tasks; each runs within a transaction.
import type { DatabaseSync } from 'node:sqlite'
import type {
  AnswerRoom,
  NewTask,
  TaskBounds,
  TaskNews,
  TaskRecord,
  TaskRefusal,
  TaskState,
  TaskSummary,
} from '../../../core/transport.ts'
import type { StoreBounds } from './bounds.ts'
import { bytesOf, type FoundTask, hasEnded, SMALL, summaryOf, TASK_COST, taskParts } from './task-row.ts'
import { runOperations } from './task-runs.ts'
import { bound, textOf } from './texts.ts'

/** Expired tasks deleted at most before a new one is refused. */
const SWEPT = 100

const count = (row: Record<string, unknown> | undefined, column = 'n') => Number(row?.[column] ?? 0)

export function taskOperations(db: DatabaseSync, bounds: Pick<StoreBounds, 'maxSize'>) {
  const parts = taskParts(db, bounds)
  const { find, read, refusalOf, forget } = parts
  const sql = {
    dropDead: db.prepare('DELETE FROM tasks WHERE name = ? AND until <= ?'),
    sweep: db.prepare('DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE until <= ? ORDER BY until LIMIT ?)'),
    kept: db.prepare('SELECT count(*) AS n FROM tasks WHERE holder = ?'),
    open: db.prepare("SELECT count(*) AS n FROM tasks WHERE holder = ? AND state IN ('queued', 'running')"),
    tally: db.prepare("SELECT entries FROM tallies WHERE name = 'tasks'"),
    add: db.prepare(`INSERT INTO tasks
      (name, holder, owner, queue, state, created, updated, until, leased, version, fence, runs, open, size, body)
      VALUES (?, ?, ?, ?, 'queued', ?, ?, ?, 0, 1, 0, 0, 0, ?, ?)`),
    list: db.prepare(`${SMALL} WHERE holder = ? AND id < ? AND until > ? ORDER BY id DESC LIMIT ?`),
    unanswered: db.prepare('SELECT 1 FROM task_questions WHERE task = ? AND name = ? AND answer IS NULL'),
    said: db.prepare('SELECT sum(length(CAST(answer AS BLOB))) AS n FROM task_questions WHERE task = ?'),
    answer: db.prepare('UPDATE task_questions SET answer = ? WHERE task = ? AND name = ? AND answer IS NULL'),
    answered: db.prepare(
      'UPDATE tasks SET version = version + 1, updated = max(updated, ?), open = open - ?, size = size + ? WHERE id = ?',
    ),
    cancel: db.prepare(
      `UPDATE tasks SET state = 'cancelled', fence = fence + 1, version = version + 1, updated = max(updated, ?) WHERE id = ?`,
    ),
    waiting: db.prepare(
      "SELECT queue, count(*) AS n, min(id) AS first FROM tasks WHERE state = 'queued' AND until > ? GROUP BY queue",
    ),
    running: db.prepare("SELECT queue, count(*) AS n FROM tasks WHERE state = 'running' AND until > ? GROUP BY queue"),
    created: db.prepare('SELECT created FROM tasks WHERE id = ?'),
  }
  return {
    ...runOperations(db, parts),
    createTask({ id, holder, owner, queue, ttl, body }: NewTask, most: TaskBounds) {
      const { openPerHolder, keptPerHolder, kept } = most
      const now = Date.now()
      if (find(id)) return 'created' as const
      sql.dropDead.run(bound(id), now)
      sql.sweep.run(now, SWEPT)
      const own = bound(holder)
      if (count(sql.kept.get(own)) >= keptPerHolder || count(sql.open.get(own)) >= openPerHolder)
        return 'holder' as const
      const size = TASK_COST + bytesOf(id, holder, owner, queue, body)
      const refusal = refusalOf(own, size, most)
      if (refusal) return refusal
      if (count(sql.tally.get(), 'entries') >= kept) return 'full' as const
      const until = now + Math.ceil(ttl)
      sql.add.run(bound(id), own, bound(owner), bound(queue), now, now, until, size, bound(body))
      return 'created' as const
    },
    answerTask(
      id: string,
      answers: Readonly<Record<string, string>>,
      room?: AnswerRoom,
    ): number | TaskRefusal | 'task' {
      const found = find(id)
      if (!found || hasEnded(found.state)) return 0
      const taken = Object.entries(answers).filter(([key]) => sql.unanswered.get(found.id, bound(key)))
      if (taken.length === 0) return 0
      const bytes = bytesOf(...taken.map(([, answer]) => answer))
      const most = room?.bytesPerTask ?? Number.POSITIVE_INFINITY
      if (count(sql.said.get(found.id)) + bytes > most) return 'task'
      const refusal = refusalOf(found.holder, bytes, room)
      if (refusal) return refusal
      for (const [key, answer] of taken) sql.answer.run(bound(answer), found.id, bound(key))
      sql.answered.run(Date.now(), taken.length, bytes, found.id)
      return taken.length
    },
    cancelTask(id: string): boolean {
      const found = find(id)
      if (!found || hasEnded(found.state)) return false
      forget(found)
      sql.cancel.run(Date.now(), found.id)
      return true
    },
    getTask(id: string): TaskRecord | undefined {
      const found = find(id)
      return found && read(found.id)
    },
    lookAtTask(id: string): TaskSummary | undefined {
      const found = find(id)
      return found && summaryOf(found)
    },
    listTasks(holder: string, most: number, before: number): TaskSummary[] {
      const rows = sql.list.all(bound(holder), before, Date.now(), most) as unknown as FoundTask[]
      return rows.map(summaryOf)
    },
    taskDepths() {
      const now = Date.now()
      const depths = new Map<string, { queue: string; queued: number; running: number; waited: number }>()
      const of = (name: unknown) => {
        const queue = textOf(name)
        const depth = depths.get(queue) ?? { queue, queued: 0, running: 0, waited: 0 }
        depths.set(queue, depth)
        return depth
      }
      for (const row of sql.waiting.all(now)) {
        const created = count(sql.created.get(Number(row['first'])), 'created')
        Object.assign(of(row['queue']), { queued: count(row), waited: Math.max(0, now - created) })
      }
      for (const row of sql.running.all(now)) of(row['queue']).running = count(row)
      return [...depths.values()]
    },
  }
}

const BATCH = 1_000

export interface TaskNewsReading {
  /** Undefined: changes before were deleted unread. */
  read(): ReadonlyArray<TaskNews | undefined>
}

export function createTaskNews(db: DatabaseSync): TaskNewsReading {
  const next = db.prepare(`SELECT id, name, queue, state FROM task_news WHERE id > ? ORDER BY id LIMIT ${BATCH}`)
  let last = Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'task_news'").get()?.['seq'] ?? 0)
  return {
    read() {
      const rows = next.all(last)
      const isWhole = rows.length === 0 || Number(rows[0]?.['id']) === last + 1
      last = Number(rows.at(-1)?.['id'] ?? last)
      const news = rows.map(({ name, queue, state }) => ({
        ...{ id: textOf(name), queue: textOf(queue), state: textOf(state) as TaskState },
      }))
      return isWhole ? news : [undefined, ...news]
    },
  }
}
