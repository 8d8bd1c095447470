// Which tasks changed since it was read last, whoever of the processes changed them. For main.ts.
import type { DatabaseSync } from 'node:sqlite'
import type { TaskNews, TaskState } from '../../../core/transport.ts'
import { textOf } from './texts.ts'

/** Changes that are read at once. */
const BATCH = 1_000

export interface TaskNewsReading {
  /** Undefined in the place of those that are gone. */
  read(): ReadonlyArray<TaskNews | undefined>
}

/** From now on. */
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
