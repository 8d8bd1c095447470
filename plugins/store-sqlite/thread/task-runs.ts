// Operations of the node that runs a task: claim, report, end. Only with the fence of the last claim.
import type { DatabaseSync } from 'node:sqlite'
import type {
  QueueOffer,
  TaskEnd,
  TaskLease,
  TaskQuestion,
  TaskRecord,
  TaskRefusal,
  TaskRoom,
} from '../../../core/transport.ts'
import { bytesOf, type FoundTask, hasEnded, type TaskParts } from './task-row.ts'
import { bound, textOf } from './texts.ts'

/** Bytes of a question besides its texts. */
const QUESTION_COST = 100

const CHANGED = 'version = version + 1, updated = max(updated, ?)'

const count = (row: Record<string, unknown> | undefined) => Number(row?.['n'] ?? 0)

export function runOperations(db: DatabaseSync, { find, read, refusalOf, growthByEnding, forget }: TaskParts) {
  const sql = {
    turns: db.prepare('SELECT holder FROM task_turns WHERE queue = ? ORDER BY turn'),
    ofQueue: db.prepare("SELECT count(*) AS n FROM tasks WHERE queue = ? AND state = 'running'"),
    ofHolder: db.prepare("SELECT count(*) AS n FROM tasks WHERE queue = ? AND holder = ? AND state = 'running'"),
    first: db.prepare(
      "SELECT id FROM tasks WHERE queue = ? AND holder = ? AND state = 'queued' AND until > ? ORDER BY id LIMIT 1",
    ),
    begin: db.prepare(
      `UPDATE tasks SET state = 'running', leased = ?, fence = fence + 1, runs = runs + ?, ${CHANGED} WHERE id = ?`,
    ),
    moveBack: db.prepare(
      `UPDATE task_turns SET turn = (SELECT max(turn) + 1 FROM task_turns WHERE queue = ?) WHERE queue = ? AND holder = ?`,
    ),
    lapsed: db.prepare(
      "SELECT id FROM tasks WHERE state = 'running' AND leased <= ? AND until > ? ORDER BY leased LIMIT 1",
    ),
    renew: db.prepare('UPDATE tasks SET leased = ? WHERE id = ?'),
    release: db.prepare(`UPDATE tasks SET state = 'queued', ${CHANGED} WHERE id = ?`),
    note: db.prepare(`UPDATE tasks SET note = ?, size = size + ?, ${CHANGED} WHERE id = ?`),
    asked: db.prepare('SELECT 1 FROM task_questions WHERE task = ? AND name = ?'),
    ask: db.prepare('INSERT INTO task_questions (task, name, question) VALUES (?, ?, ?)'),
    opened: db.prepare(`UPDATE tasks SET open = open + 1, size = size + ?, ${CHANGED} WHERE id = ?`),
    end: db.prepare(`UPDATE tasks SET state = ?, outcome = ?, until = max(until, ?), ${CHANGED} WHERE id = ?`),
  }
  function begin(id: number, lease: number, runs: number): TaskRecord {
    const now = Date.now()
    sql.begin.run(now + Math.ceil(lease), runs, now, id)
    return read(id)
  }

  function take(offer: QueueOffer, lease: number): TaskRecord | undefined {
    const queue = bound(offer.queue)
    if (count(sql.ofQueue.get(queue)) >= offer.running) return undefined
    for (const { holder } of sql.turns.all(queue)) {
      const own = holder as string
      if (count(sql.ofHolder.get(queue, own)) >= offer.runningPerHolder) continue
      const found = sql.first.get(queue, own, Date.now())
      if (!found) continue
      const task = begin(Number(found['id']), lease, 1)
      sql.moveBack.run(queue, queue, own)
      return task
    }
    return undefined
  }

  function held({ id, fence }: TaskLease): FoundTask | undefined {
    const found = find(id)
    return found?.fence === fence && found.state === 'running' ? found : undefined
  }

  function write(
    lease: TaskLease,
    act: (found: FoundTask, now: number) => TaskRefusal | undefined,
  ): boolean | TaskRefusal {
    const found = held(lease)
    return found ? (act(found, Date.now()) ?? true) : false
  }

  return {
    claimTask(offers: readonly QueueOffer[], lease: number): TaskRecord | undefined {
      for (const offer of offers) {
        const task = take(offer, lease)
        if (task) return task
      }
      return undefined
    },
    claimLapsedTask(lease: number): TaskRecord | undefined {
      const now = Date.now()
      const found = sql.lapsed.get(now, now)
      return found && begin(Number(found['id']), lease, 0)
    },
    renewTasks: (leases: readonly TaskLease[], lease: number): ReadonlyArray<number | undefined> =>
      leases.map(one => {
        const found = held(one)
        if (found) sql.renew.run(Date.now() + Math.ceil(lease), found.id)
        return found?.version
      }),
    releaseTask: (lease: TaskLease): boolean =>
      write(lease, ({ id }, now) => {
        sql.release.run(now, id)
        return undefined
      }) === true,
    noteTask: (lease: TaskLease, note: string) =>
      write(lease, (found, now): TaskRefusal | undefined => {
        const grown = bytesOf(note) - (found.note === null ? 0 : bytesOf(textOf(found.note)))
        const refusal = refusalOf(found.holder, grown)
        if (refusal) return refusal
        sql.note.run(bound(note), grown, now, found.id)
        return undefined
      }),
    askTask: (lease: TaskLease, { key, text }: Pick<TaskQuestion, 'key' | 'text'>) =>
      write(lease, ({ id, holder }, now): TaskRefusal | undefined => {
        if (sql.asked.get(id, bound(key))) return undefined
        const refusal = refusalOf(holder, QUESTION_COST + bytesOf(key, text))
        if (refusal) return refusal
        sql.ask.run(id, bound(key), bound(text))
        sql.opened.run(QUESTION_COST + bytesOf(key, text), now, id)
        return undefined
      }),
    endTask(lease: TaskLease, { state, outcome }: TaskEnd, ttl: number, room: TaskRoom | undefined, isSmall: boolean) {
      const known = find(lease.id)
      if (known && known.fence === lease.fence && hasEnded(known.state)) return true
      return write(lease, (found, now): TaskRefusal | undefined => {
        const refusal = isSmall ? undefined : refusalOf(found.holder, growthByEnding(found, outcome), room)
        if (refusal) return refusal
        forget(found, outcome)
        const text = outcome === undefined ? null : bound(outcome)
        sql.end.run(state, text, now + Math.ceil(ttl), now, found.id)
        return undefined
      })
    },
  }
}
