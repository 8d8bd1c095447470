// Messages to single nodes: each has an inbox, a Redis Stream, and a key that is there while the node is. A message for a
// node that is gone is not kept.

import type { PluginHost } from '../../core/index.ts'
import type { PeerMessage, Peers } from '../../core/transport.ts'
import { type RedisConnection, redisScript } from '../families/redis/index.ts'
import { inboxKey, leftKey, nodeKey } from './keys.ts'

/** A node that was not heard of for as long is gone, milliseconds. */
export const NODE_LIFETIME = 15_000
/** How often a node is heard of, milliseconds. */
const BEAT_INTERVAL = 5_000
/** How long it is taken for known whether a node is there, milliseconds. */
const KNOWN_FOR = 1_000
/** An inbox that nobody reads goes after as long, milliseconds. */
const INBOX_LIFETIME = '60000'
const MAX_MESSAGES = '100000'
/** After Redis was away nodes are not taken for gone for as long, milliseconds: they have not been heard of yet. */
const UNSURE = 10_000

/** KEYS: the node, its inbox. ARGV: message, how many are kept, lifetime of the inbox, '1' for a node not heard of too. */
const SEND = redisScript(`
if ARGV[4] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'm', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`)

export interface RedisPeers extends Peers {
  readonly inbox: string
  /** Resolves once other nodes can know of this one, where Redis is there. */
  begin(): Promise<void>
  /** A message that was read. */
  deliver(text: string): void
}

export function createPeers(redis: RedisConnection, { node, log }: Pick<PluginHost, 'node' | 'log'>): RedisPeers {
  const inbox = inboxKey(redis, node)
  const own = nodeKey(redis, node)
  const known = new Map<string, { readonly alive: boolean; readonly at: number }>()
  let listener: ((message: PeerMessage) => void) | undefined
  let beating: NodeJS.Timeout | undefined
  let left = false
  /** When this node was heard of last itself, and until when others are not known. */
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
        log.error({ err }, 'a message of another node could not be taken')
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
