// A task as fields of a hash at Redis: back to what the slot gives. For store.ts; lines.ts has what else is kept of it.
import type { TaskQuestion, TaskRecord, TaskState, TaskSummary } from '../../core/transport.ts'

type Fields = ReadonlyMap<string, string>

/** Questions of a task: what says more in Redis is not believed. */
const MOST_QUESTIONS = 100

/** Fields and values by turns. */
export function fieldsOf(flat: readonly string[]): Fields {
  const fields = new Map<string, string>()
  for (let index = 0; index < flat.length; index += 2) fields.set(flat[index] ?? '', flat[index + 1] ?? '')
  return fields
}

export function readSummary(fields: Fields): TaskSummary {
  const text = (name: string) => fields.get(name) ?? ''
  const number = (name: string) => Number(fields.get(name))
  const note = fields.get('note')
  return {
    ...{ id: text('id'), holder: text('holder'), owner: text('owner'), queue: text('queue'), serial: number('serial') },
    ...{ state: text('state') as TaskState, createdAt: number('created'), updatedAt: number('updated') },
    ...{
      until: number('until'),
      version: number('version'),
      fence: number('fence'),
      runs: number('runs'),
      open: number('open'),
    },
    ...(note !== undefined && { note }),
  }
}

function readQuestion(fields: Fields, number: number): TaskQuestion {
  const answer = fields.get(`a:${number}`)
  const question = { key: fields.get(`q:${number}`) ?? '', text: fields.get(`t:${number}`) ?? '' }
  return answer === undefined ? question : { ...question, answer }
}

export function readTask(fields: Fields): TaskRecord {
  const asked = Math.min(Number(fields.get('asked') ?? 0), MOST_QUESTIONS)
  const outcome = fields.get('outcome')
  return {
    ...readSummary(fields),
    body: fields.get('body') ?? '',
    questions: Array.from({ length: asked }, (_, index) => readQuestion(fields, index + 1)),
    ...(outcome !== undefined && { outcome }),
  }
}

/** As `LIST` gives them: how many fields and values, then these. */
export function readSummaries(reply: readonly string[]): TaskSummary[] {
  const summaries: TaskSummary[] = []
  for (let at = 0; at < reply.length; ) {
    const size = Number(reply[at])
    summaries.push(readSummary(fieldsOf(reply.slice(at + 1, at + 1 + size))))
    at += 1 + size
  }
  return summaries
}
