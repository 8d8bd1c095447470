// Messages to single nodes: each node has an inbox (a Redis Stream) and a key with a TTL. Also reads changes and inbox.
import { setTimeout as pause } from 'node:timers/promises'
import type { InternalHost } from '../../core/internal.ts'
import type { Logger } from '../../core/plugin.ts'
import type { PeerMessage, Peers } from '../../core/transport.ts'
import { entriesOf, type RedisConnection, type RedisReader, redisScript } from '../families/redis/index.ts'
import { changesKey, inboxKey, leftKey, nodeKey, type RedisChangeBus } from './bus.ts'

/** Milliseconds after which a silent node is gone. */
const NODE_LIFETIME = 15_000
const BEAT_INTERVAL = 5_000
/** Milliseconds for which the state of a node is cached. */
const KNOWN_FOR = 1_000
const INBOX_LIFETIME = '60000'
const MAX_MESSAGES = '100000'
/** Milliseconds after an outage for which silent nodes count as alive. */
const UNSURE = 10_000

/** KEYS: node, inbox. ARGV: message, maximum length, lifetime of the inbox, '1' to send to a silent node too. */
const SEND = redisScript(`
if ARGV[4] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'm', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`)

interface RedisPeers extends Peers {
  readonly inbox: string
  begin(): Promise<void>
  deliver(text: string): void
}

export function createPeers(
  redis: RedisConnection,
  { config: { node }, log }: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
): RedisPeers {
  const inbox = inboxKey(redis, node)
  const own = nodeKey(redis, node)
  const known = new Map<string, { readonly alive: boolean; readonly at: number }>()
  let listener: ((message: PeerMessage) => void) | undefined
  let beating: NodeJS.Timeout | undefined
  let left = false
  let beatAt = performance.now()
  let unsureUntil = 0

  const isUnsure = () => performance.now() < unsureUntil || performance.now() - beatAt > 2 * BEAT_INTERVAL

  async function beat() {
    if (left) return
    try {
      await redis.run(client =>
        Promise.all([client.set(own, '1', { PX: NODE_LIFETIME }), client.pExpire(inbox, Number(INBOX_LIFETIME))]),
      )
      if (performance.now() - beatAt > 2 * BEAT_INTERVAL) unsureUntil = performance.now() + UNSURE
      beatAt = performance.now()
    } catch (err) {
      log.debug({ err }, 'Redis was not told that this node is there')
    }
  }

  async function ask(other: string): Promise<boolean> {
    const [there, gone] = await redis.run(client =>
      Promise.all([client.exists(nodeKey(redis, other)), client.exists(leftKey(redis, other))]),
    )
    const alive = there === 1 || (gone === 0 && isUnsure())
    if (known.size > 1_000) known.clear()
    known.set(other, { alive, at: performance.now() })
    return alive
  }

  return {
    node,
    inbox,
    async begin() {
      let wasHere = redis.healthy
      redis.onChange(healthy => {
        if (!healthy) return
        if (wasHere) unsureUntil = performance.now() + UNSURE
        wasHere = true
        void beat()
      })
      beating = setInterval(() => void beat(), BEAT_INTERVAL).unref()
      if (redis.healthy) await beat()
    },
    async send(other, message) {
      const keys = [nodeKey(redis, other), inboxKey(redis, other)]
      return (
        (await redis.evaluate(SEND, keys, [
          JSON.stringify(message),
          MAX_MESSAGES,
          INBOX_LIFETIME,
          isUnsure() ? '1' : '',
        ])) === 1
      )
    },
    async isAlive(other) {
      const before = known.get(other)
      return before && performance.now() - before.at < KNOWN_FOR ? before.alive : ask(other)
    },
    receive(heard) {
      listener = heard
    },
    deliver(text) {
      try {
        listener?.(JSON.parse(text))
      } catch (err) {
        log.error({ code: 'MH2311', err }, 'a message of another node could not be taken')
      }
    },
    async leave() {
      if (left) return
      left = true
      clearInterval(beating)
      if (!redis.healthy) return
      await redis
        .run(client =>
          Promise.all([
            client.set(leftKey(redis, node), '1', { PX: Number(INBOX_LIFETIME) }),
            client.unlink([own, inbox]),
          ]),
        )
        .catch(err => log.debug({ err }, 'Redis was not told that this node goes'))
    },
  }
}

const BATCH = 1_000
const PAUSE = 100

interface ReadingSettings {
  readonly inbox: string
  readonly bus: RedisChangeBus
  readonly receive: (text: string) => void
  readonly log: Logger
}

export function createReading(redis: RedisConnection, { inbox, bus, receive, log }: ReadingSettings) {
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
    // Messages that were sent before a change are delivered before it.
    if (messages.length >= BATCH) return
    for (const { id, message } of entriesOf(reply, changes)) bus.tell(id, Number(message['n']), message['c'] ?? 'null')
  }

  /** Only this node reads its inbox. */
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
      void readAll().catch(err => log.error({ code: 'MH2312', err }, 'changes are not read any more'))
    },
    close() {
      closed = true
      reader?.close()
    },
  }
}
