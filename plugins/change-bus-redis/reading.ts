// One connection that waits for what concerns this node: its inbox, and the changes that concern all. It goes on after
// the last entry that it read, whatever happened to the connection.
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../core/index.ts'
import type { RedisConnection, RedisReader } from '../families/redis/index.ts'
import type { RedisChangeBus } from './bus.ts'
import { changesKey } from './keys.ts'

/** Entries of one stream that are read at once. */
const BATCH = 1_000
const PAUSE = 100

interface Entry {
  readonly id: string
  readonly message: Readonly<Record<string, string>>
}

export interface Reading {
  /** Resolves once it is known from where on is read, where Redis is there. */
  begin(): Promise<void>
  close(): void
}

interface ReadingSettings {
  readonly inbox: string
  readonly bus: RedisChangeBus
  readonly receive: (text: string) => void
  readonly log: Logger
}

/** As node-redis gives it, by its protocol version: pairs, or an object by name. */
function entriesOf(reply: unknown, key: string): readonly Entry[] {
  if (reply === null || typeof reply !== 'object') return []
  if (!Array.isArray(reply)) return ((reply as Record<string, readonly Entry[]>)[key] ?? []) as readonly Entry[]
  const found = reply.find(stream => stream?.name === key)
  return found?.messages ?? []
}

export function createReading(redis: RedisConnection, { inbox, bus, receive, log }: ReadingSettings): Reading {
  const changes = changesKey(redis)
  let reader: RedisReader | undefined
  let inboxId = '0-0'
  let closed = false

  async function readOnce({ client }: RedisReader) {
    const streams = [
      { key: inbox, id: inboxId },
      { key: changes, id: bus.lastId },
    ]
    const reply = await client.xRead(streams, { BLOCK: redis.commandTimeout, COUNT: BATCH })
    const messages = entriesOf(reply, inbox)
    for (const { id, message } of messages) {
      inboxId = id
      receive(message['m'] ?? '')
    }
    if (messages.length > 0) forget()
    // What was sent to this node before a change must be heard before it: there may be more in the inbox.
    if (messages.length >= BATCH) return
    for (const { id, message } of entriesOf(reply, changes)) bus.tell(id, Number(message['n']), message['c'] ?? 'null')
  }

  /** What was read is not kept: this node alone reads its inbox. */
  function forget() {
    const [time, counter] = inboxId.split('-')
    const next = `${time}-${Number(counter) + 1}`
    redis.client.xTrim(inbox, 'MINID', next as never).catch(err => log.debug({ err }, 'an inbox could not be cleared'))
  }

  async function readAll() {
    reader = await redis.duplicate()
    while (!closed) {
      try {
        await locateOnce()
        await readOnce(reader)
      } catch (err) {
        if (closed) return
        log.debug({ err }, 'waiting for Redis to read on')
        await pause(PAUSE)
      }
    }
  }

  let located = false
  async function locateOnce() {
    if (located) return
    await bus.locate()
    located = true
  }

  return {
    async begin() {
      redis.onChange(healthy => {
        if (!healthy) located = false
        else if (!located) void locateOnce().catch(err => log.debug({ err }, 'the change bus was not found'))
      })
      if (redis.healthy) await locateOnce()
      void readAll().catch(err => log.error({ err }, 'changes are not read any more'))
    },
    close() {
      closed = true
      reader?.close()
    },
  }
}
