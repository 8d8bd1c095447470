// The task store that every node shares: one script for each operation. scripts.ts has what happens at Redis.
import { createHash, randomBytes } from 'node:crypto'
import type { Logger } from '../../core/index.ts'
import type { TaskStore } from '../../core/transport.ts'
import { evaluateInTime, isMomentary, type RedisConnection, type RedisScript } from '../families/redis/index.ts'
import { TaskNewsReading } from './news.ts'
import { fieldsOf, readSummaries, readTask } from './record.ts'
import * as scripts from './scripts.ts'

/** Bytes of all tasks: past it none begins. Those that have begun go on, and end. */
const MOST_BYTES = 256 * 1_048_576
/** What a task costs beside its texts, bytes: test/plugins/task-store-redis.test.ts holds it. */
const TASK_COST = 2_000
/** Claims whose answers were lost that are remembered. */
const MOST_LOST = 100

export interface RedisTaskStore extends TaskStore {
  /** Resolves once this node is told of changes, where Redis is there; the first `watch` begins it as well. */
  begin(): Promise<void>
  close(): void
}

/** Ids are what a task is asked for with, holders are users: neither is the name of a key. */
const digest = (text: string, length: number) => createHash('sha256').update(text).digest('base64url').slice(0, length)
const idOf = (id: string) => digest(id, 22)
const nameOf = (text: string) => digest(text, 16)

type Reply = readonly string[]

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

  /** Once more where the answer was lost, for what is the same when it is done twice. `again`: whether it is the second time. */
  async #askTwice(script: RedisScript, ...args: readonly (string | number)[]): Promise<Reply & { again?: boolean }> {
    try {
      return await this.#ask(script, ...args)
    } catch (error) {
      if (!isMomentary(error)) throw error
      return Object.assign([...(await this.#ask(script, ...args))], { again: true })
    }
  }

  create: TaskStore['create'] = async ({ id, holder, queue, ttl, body }, { openPerHolder, keptPerHolder, kept }) => {
    const size = TASK_COST + [id, holder, queue, body].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
    const bounds = [Math.ceil(ttl), openPerHolder, keptPerHolder, kept, this.#mostBytes, size]
    const [h, q] = [nameOf(holder), nameOf(queue)]
    const [word] = await this.#askTwice(scripts.CREATE, idOf(id), h, q, ...bounds, id, holder, queue, body)
    return word === 'done' ? 'created' : word === 'holder' ? 'holder' : 'full'
  }

  get: TaskStore['get'] = async id => {
    const [word, ...flat] = await this.#askTwice(scripts.GET, idOf(id))
    return word === 'done' ? readTask(fieldsOf(flat)) : undefined
  }

  list: TaskStore['list'] = async (holder, most, before) => {
    const from = before === undefined ? '+inf' : `(${before}`
    const [, ...reply] = await this.#askTwice(scripts.LIST, nameOf(holder), most, from)
    return readSummaries(reply)
  }

  /**
   * `lost`: names of such claims whose answers were lost; they may have given a task that nobody runs, and are asked again with
   * that name, at once or in the place of the next.
   */
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
    (await this.#askTwice(scripts.NOTE, idOf(id), fence, note))[0] === 'done'

  ask: TaskStore['ask'] = async ({ id, fence }, { key, text }) =>
    (await this.#askTwice(scripts.ASK, idOf(id), fence, key, text))[0] === 'done'

  end: TaskStore['end'] = async ({ id, fence }, { state, outcome }, ttl) => {
    const more = outcome === undefined ? [] : [outcome]
    return (await this.#askTwice(scripts.END, idOf(id), fence, state, Math.ceil(ttl), ...more))[0] === 'done'
  }

  answer: TaskStore['answer'] = async (id, answers) => {
    const { 1: taken, again } = await this.#askTwice(scripts.ANSWER, idOf(id), ...Object.entries(answers).flat())
    // Done by the first, which was not heard.
    return again && taken === '0' ? await this.#answered(id, answers) : Number(taken)
  }

  async #answered(id: string, answers: Readonly<Record<string, string>>): Promise<number> {
    const questions = (await this.get(id))?.questions ?? []
    return questions.filter(({ key, answer }) => answer !== undefined && answer === answers[key]).length
  }

  cancel: TaskStore['cancel'] = async id => {
    const { 0: word, again } = await this.#askTwice(scripts.CANCEL, idOf(id))
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

/** `mostBytes`: for tests. */
export const createRedisTaskStore = (redis: RedisConnection, log: Logger, mostBytes = MOST_BYTES): RedisTaskStore =>
  new Tasks(redis, log, mostBytes)
