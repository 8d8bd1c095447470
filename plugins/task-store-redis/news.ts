// What tells this node of every change of every task: a connection of its own that waits at a Redis Stream. Changes are
// numbered: where one is not one more than the last, some were missed.
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../core/index.ts'
import type { TaskNews, TaskState } from '../../core/transport.ts'
import { type RedisConnection, type RedisReader, redisScript } from '../families/redis/index.ts'

/** Changes that are read at once. */
const BATCH = 1_000
/** Milliseconds until Redis is asked again after it failed. */
const PAUSE = 100

/** KEYS: what the keys begin with. Gives the id of the last change, and the number of changes. */
const LOCATE = redisScript(`
local last = redis.call('XREVRANGE', KEYS[1] .. 'news', '+', '-', 'COUNT', 1)[1]
return {last and last[1] or '0-0', redis.call('HGET', KEYS[1] .. 'sums', 'news') or '0'}
`)

/** Undefined: something may have been missed. */
type Listener = (news: TaskNews | undefined) => void

interface Entry {
  readonly id: string
  readonly message: Readonly<Record<string, string>>
}

/** As node-redis gives it, by its protocol version: pairs, or an object by name. */
function entriesOf(reply: unknown, key: string): readonly Entry[] {
  if (reply === null || typeof reply !== 'object') return []
  if (!Array.isArray(reply)) return (reply as Record<string, readonly Entry[]>)[key] ?? []
  return reply.find(stream => stream?.name === key)?.messages ?? []
}

export interface TaskNewsReading {
  watch(listener: Listener): () => void
  /** Resolves once changes are told, where Redis is there. */
  begin(): Promise<void>
  close(): void
}

export function createReading(redis: RedisConnection, prefix: string, log: Logger): TaskNewsReading {
  const key = `${prefix}news`
  const listeners = new Set<Listener>()
  let reader: RedisReader | undefined
  let lastId: string | undefined
  let count = 0
  let closed = false

  function tell(news: TaskNews | undefined) {
    for (const listener of [...listeners]) {
      try {
        listener(news)
      } catch (err) {
        log.error({ err }, 'a listener of changes of tasks failed')
      }
    }
  }

  /** From the end on: what was before may have been missed. */
  async function locate() {
    const [id = '0-0', number = '0'] = (await redis.evaluate(LOCATE, [prefix], [])) as string[]
    if (lastId === id && count === Number(number)) return
    lastId = id
    count = Number(number)
    tell(undefined)
  }

  function hear({ id, message }: Entry) {
    lastId = id
    const number = Number(message['n'])
    if (number !== count + 1) tell(undefined)
    count = number
    tell({ id: message['i'] ?? '', queue: message['q'] ?? '', state: message['s'] as TaskState })
  }

  async function readAll(isLocated: boolean) {
    let isSure = isLocated
    reader = await redis.duplicate()
    if (closed) reader.close()
    while (!closed) {
      try {
        if (!isSure) await locate()
        isSure = true
        const reply = await reader.client.xRead([{ key, id: lastId ?? '0-0' }], {
          BLOCK: redis.commandTimeout,
          COUNT: BATCH,
        })
        for (const entry of entriesOf(reply, key)) hear(entry)
      } catch (err) {
        if (closed) return
        isSure = false
        log.debug({ err }, 'waiting for Redis to read on which tasks changed')
        await pause(PAUSE)
      }
    }
  }

  let begun: Promise<void> | undefined
  async function beginOnce() {
    if (redis.healthy) await locate().catch(err => log.debug({ err }, 'which tasks changed is not known yet'))
    void readAll(lastId !== undefined).catch(err => log.error({ err }, 'changes of tasks are not read any more'))
  }
  function begin() {
    if (!closed) begun ??= beginOnce()
    return begun ?? Promise.resolve()
  }

  return {
    // Whoever keeps no tasks has no connection for them.
    watch(tellOne) {
      // Of its own, so that one function may watch twice.
      const listener: Listener = news => tellOne(news)
      listeners.add(listener)
      void begin()
      return () => void listeners.delete(listener)
    },
    begin,
    close() {
      closed = true
      reader?.close()
    },
  }
}
