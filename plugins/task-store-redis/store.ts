// The task store in Redis: one script for each operation.

import { createHash, randomBytes } from 'node:crypto'
import { HostError } from '../../core/index.ts'
import type { Logger } from '../../core/plugin.ts'
import {
  SMALL_OUTCOME,
  shareOf,
  type TaskQuestion,
  type TaskRecord,
  type TaskRefusal,
  type TaskRoom,
  type TaskState,
  type TaskStore,
  type TaskSummary,
} from '../../core/transport.ts'
import {
  evaluateInTime,
  fieldsOf,
  isMomentary,
  type RedisConnection,
  type RedisScript,
} from '../families/redis/index.ts'
import { TaskNewsReading } from './news.ts'
import * as scripts from './scripts.ts'
import { CANCEL, END } from './scripts.ts'

type Fields = ReadonlyMap<string, string>

/** Maximum questions of a task. A larger number in Redis is invalid. */
const MOST_QUESTIONS = 100

function readSummary(fields: Fields): TaskSummary {
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

function readTask(fields: Fields): TaskRecord {
  const asked = Math.min(Number(fields.get('asked') ?? 0), MOST_QUESTIONS)
  const outcome = fields.get('outcome')
  return {
    ...readSummary(fields),
    body: fields.get('body') ?? '',
    questions: Array.from({ length: asked }, (_, index) => readQuestion(fields, index + 1)),
    ...(outcome !== undefined && { outcome }),
  }
}

function readSummaries(reply: readonly string[]): TaskSummary[] {
  const summaries: TaskSummary[] = []
  for (let at = 0; at < reply.length; ) {
    const size = Number(reply[at])
    summaries.push(readSummary(fieldsOf(reply.slice(at + 1, at + 1 + size))))
    at += 1 + size
  }
  return summaries
}

/** Maximum bytes of all tasks. Above it tasks can only end with a small outcome. */
const MOST_BYTES = 256 * 1_048_576
/** Overhead of a task, bytes. */
const TASK_COST = 2_000
/** Remembered claims whose replies were lost. */
const MOST_LOST = 100

interface RedisTaskStore extends TaskStore {
  begin(): Promise<void>
  close(): void
}

/** Ids are credentials and holders are users: keys contain digests. */
const digest = (text: string, length: number) => createHash('sha256').update(text).digest('base64url').slice(0, length)
const idOf = (id: string) => digest(id, 22)
const nameOf = (text: string) => digest(text, 16)

type Reply = readonly string[]

const refusalOf = (word: string | undefined): TaskRefusal | undefined =>
  word === 'holder' || word === 'full' ? word : undefined

function wrote(word: string | undefined): boolean {
  const headers = { 'Retry-After': '10' }
  if (!refusalOf(word)) return word === 'done'
  throw new HostError('unavailable', { detail: 'there is no room for what the task says', headers })
}

class Tasks {
  readonly shared = true
  readonly #redis: RedisConnection
  readonly #prefix: string
  readonly #mostBytes: number
  readonly #reading: TaskNewsReading
  readonly #lost = { claim: [] as string[], lapsed: [] as string[] }

  constructor(redis: RedisConnection, log: Logger, mostBytes: number) {
    this.#redis = redis
    this.#prefix = redis.key('{tasks}', '')
    this.#mostBytes = mostBytes
    this.#reading = new TaskNewsReading(redis, this.#prefix, log)
  }

  begin = () => this.#reading.begin()
  close = () => this.#reading.close()
  watch: TaskStore['watch'] = tell => this.#reading.watch(tell)

  #ask(script: RedisScript, ...args: readonly (string | number)[]): Promise<Reply> {
    return evaluateInTime(this.#redis, script, [this.#prefix], args.map(String))
  }

  /** Repeats idempotent operations after a lost reply. `again`: the reply is of the second attempt. */
  async #askTwice(script: RedisScript, ...args: readonly (string | number)[]): Promise<Reply & { again?: boolean }> {
    try {
      return await this.#ask(script, ...args)
    } catch (error) {
      if (!isMomentary(error)) throw error
      return Object.assign([...(await this.#ask(script, ...args))], { again: true })
    }
  }

  #room(room?: TaskRoom): readonly [number, number] {
    return [this.#mostBytes, shareOf(this.#mostBytes, room)]
  }

  create: TaskStore['create'] = async ({ id, holder, owner, queue, ttl, body }, bounds) => {
    const texts = [id, holder, owner, queue, body]
    const size = TASK_COST + texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    const { openPerHolder, keptPerHolder, kept } = bounds
    const most = [Math.ceil(ttl), openPerHolder, keptPerHolder, kept, ...this.#room(bounds), size]
    const names = [idOf(id), nameOf(holder), nameOf(queue)]
    const [word] = await this.#askTwice(scripts.CREATE, ...names, ...most, ...texts)
    return word === 'done' ? 'created' : word === 'holder' ? 'holder' : 'full'
  }

  get: TaskStore['get'] = async id => {
    const [word, ...flat] = await this.#askTwice(scripts.GET, idOf(id))
    return word === 'done' ? readTask(fieldsOf(flat)) : undefined
  }

  look: TaskStore['look'] = async id => {
    const [word, ...flat] = await this.#askTwice(scripts.LOOK, idOf(id))
    return word === 'done' ? readSummary(fieldsOf(flat)) : undefined
  }

  list: TaskStore['list'] = async (holder, most, before) => {
    const from = before === undefined ? '+inf' : `(${before}`
    const [, ...reply] = await this.#askTwice(scripts.LIST, nameOf(holder), most, from)
    return readSummaries(reply)
  }

  /** `lost`: tokens of claims whose replies were lost. They may have assigned a task, and are reused to receive it. */
  async #claim(script: RedisScript, lost: string[], lease: number, args: readonly (string | number)[]) {
    const token = lost.pop() ?? randomBytes(12).toString('base64url')
    try {
      const [word, ...flat] = await this.#askTwice(script, Math.ceil(lease), token, ...args)
      return word === 'done' ? readTask(fieldsOf(flat)) : undefined
    } catch (error) {
      if (lost.length < MOST_LOST) lost.push(token)
      throw error
    }
  }

  claim: TaskStore['claim'] = (offers, lease) => {
    const queues = offers.flatMap(({ queue, running, runningPerHolder }) => [nameOf(queue), running, runningPerHolder])
    return this.#claim(scripts.CLAIM, this.#lost.claim, lease, queues)
  }

  claimLapsed: TaskStore['claimLapsed'] = lease => this.#claim(scripts.CLAIM_LAPSED, this.#lost.lapsed, lease, [])

  renew: TaskStore['renew'] = async (leases, lease) => {
    if (leases.length === 0) return []
    const held = leases.flatMap(({ id, fence }) => [idOf(id), fence])
    const [, ...versions] = await this.#askTwice(scripts.RENEW, Math.ceil(lease), ...held)
    return leases.map((_, index) => (versions[index] ? Number(versions[index]) : undefined))
  }

  release: TaskStore['release'] = async ({ id, fence }) => {
    const { 0: word, again } = await this.#askTwice(scripts.RELEASE, idOf(id), fence)
    return word === 'done' || (word === 'again' && again === true)
  }

  note: TaskStore['note'] = async ({ id, fence }, note) =>
    wrote((await this.#askTwice(scripts.NOTE, idOf(id), fence, ...this.#room(), note))[0])

  ask: TaskStore['ask'] = async ({ id, fence }, { key, text }) =>
    wrote((await this.#askTwice(scripts.ASK, idOf(id), fence, ...this.#room(), key, text))[0])

  end: TaskStore['end'] = async ({ id, fence }, { state, outcome }, ttl, room) => {
    const more = outcome === undefined ? [] : [outcome]
    const isSmall = Buffer.byteLength(outcome ?? '') <= SMALL_OUTCOME
    const most = isSmall ? ['inf', 'inf'] : this.#room(room)
    const [word] = await this.#askTwice(END, idOf(id), fence, state, Math.ceil(ttl), TASK_COST, ...most, ...more)
    return refusalOf(word) ?? word === 'done'
  }

  answer: TaskStore['answer'] = async (id, answers, room) => {
    const most = [...this.#room(room), room?.bytesPerTask ?? 'inf']
    const pairs = Object.entries(answers).flat()
    const { 0: word, 1: taken, again } = await this.#askTwice(scripts.ANSWER, idOf(id), ...most, ...pairs)
    if (word === 'task') return word
    const refusal = refusalOf(word)
    if (refusal) return refusal
    return again && taken === '0' ? await this.#answered(id, answers) : Number(taken)
  }

  async #answered(id: string, answers: Readonly<Record<string, string>>): Promise<number> {
    const questions = (await this.get(id))?.questions ?? []
    return questions.filter(({ key, answer }) => answer !== undefined && answer === answers[key]).length
  }

  cancel: TaskStore['cancel'] = async id => {
    const { 0: word, again } = await this.#askTwice(CANCEL, idOf(id), TASK_COST)
    return word === 'done' || (word === 'again' && again === true)
  }

  depths: TaskStore['depths'] = async () => {
    const [, ...flat] = await this.#askTwice(scripts.DEPTHS)
    return Array.from({ length: flat.length / 4 }, (_, index) => {
      const [queue = '', queued, running, waited] = flat.slice(4 * index, 4 * index + 4)
      return { queue, queued: Number(queued), running: Number(running), waited: Number(waited) }
    })
  }
}

export const createRedisTaskStore = (redis: RedisConnection, log: Logger, mostBytes = MOST_BYTES): RedisTaskStore =>
  new Tasks(redis, log, mostBytes)
