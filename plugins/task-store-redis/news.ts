// Notifies about changes of tasks, read from a Redis Stream. Changes are numbered, so that gaps are detected.
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../core/plugin.ts'
import type { TaskNews, TaskState } from '../../core/transport.ts'
import {
  entriesOf,
  type RedisConnection,
  type RedisReader,
  redisScript,
  type StreamEntry,
} from '../families/redis/index.ts'

const BATCH = 1_000
const PAUSE = 100

/** KEYS: prefix. ARGV: an id. Returns the last id, the number of changes, and that of the next change or ''. */
const LOCATE = redisScript(`
local last = redis.call('XREVRANGE', KEYS[1] .. 'news', '+', '-', 'COUNT', 1)[1]
local next = redis.call('XRANGE', KEYS[1] .. 'news', '(' .. ARGV[1], '+', 'COUNT', 1)[1]
return {last and last[1] or '0-0', redis.call('HGET', KEYS[1] .. 'sums', 'news') or '0', next and next[2][2] or ''}
`)

/** Undefined: changes may have been missed. */
type Listener = (news: TaskNews | undefined) => void

export class TaskNewsReading {
  readonly #redis: RedisConnection
  readonly #prefix: string
  readonly #log: Logger
  readonly #listeners = new Set<Listener>()
  #begun: Promise<void> | undefined
  #reader: RedisReader | undefined
  #lastId: string | undefined
  #count = 0
  #closed = false

  constructor(redis: RedisConnection, prefix: string, log: Logger) {
    this.#redis = redis
    this.#prefix = prefix
    this.#log = log
  }

  watch(tell: Listener): () => void {
    // A new function, so that one listener can watch twice.
    const listener: Listener = news => tell(news)
    this.#listeners.add(listener)
    void this.begin()
    return () => void this.#listeners.delete(listener)
  }

  begin(): Promise<void> {
    if (!this.#closed) this.#begun ??= this.#begin()
    return this.#begun ?? Promise.resolve()
  }

  close() {
    this.#closed = true
    this.#reader?.close()
  }

  async #begin() {
    const log = this.#log
    if (this.#redis.healthy)
      await this.#locate().catch(err => log.debug({ err }, 'which tasks changed is not known yet'))
    this.#readAll().catch(err => log.error({ code: 'MH2312', err }, 'changes of tasks are not read any more'))
  }

  #tell(news: TaskNews | undefined) {
    for (const listener of [...this.#listeners]) {
      try {
        listener(news)
      } catch (err) {
        this.#log.error({ code: 'MH2510', err }, 'a listener of changes of tasks failed')
      }
    }
  }

  async #locate() {
    const before = this.#lastId
    const reply = (await this.#redis.evaluate(LOCATE, [this.#prefix], [before ?? '0-0'])) as string[]
    const [id = '0-0', number = '0', next = ''] = reply
    const isWhole = next === '' ? Number(number) === this.#count : Number(next) === this.#count + 1
    if (before !== undefined && isWhole) return
    this.#lastId = id
    this.#count = Number(number)
    this.#tell(undefined)
  }

  #hear({ id, message }: StreamEntry) {
    this.#lastId = id
    const number = Number(message['n'])
    if (number !== this.#count + 1) this.#tell(undefined)
    this.#count = number
    this.#tell({ id: message['i'] ?? '', queue: message['q'] ?? '', state: message['s'] as TaskState })
  }

  async #readAll() {
    let isSure = this.#lastId !== undefined
    this.#reader = await this.#redis.duplicate()
    if (this.#closed) this.#reader.close()
    while (!this.#closed) {
      try {
        if (!isSure) await this.#locate()
        isSure = true
        await this.#readOnce(this.#reader)
      } catch (err) {
        if (this.#closed) return
        isSure = false
        this.#log.debug({ err }, 'waiting for Redis to read on which tasks changed')
        await pause(PAUSE)
      }
    }
  }

  async #readOnce({ client }: RedisReader) {
    const key = `${this.#prefix}news`
    const from = [{ key, id: this.#lastId ?? '0-0' }]
    const reply = await client.xRead(from, { BLOCK: this.#redis.commandTimeout, COUNT: BATCH })
    for (const entry of entriesOf(reply, key)) this.#hear(entry)
  }
}
