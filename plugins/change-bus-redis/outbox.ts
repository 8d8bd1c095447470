// What waits to be put on the bus: one batch at a time, tried until Redis has it, so that changes get there in the order in
// which they were made. For bus.ts.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { errorText, type Logger } from '../../core/index.ts'
import type { Change } from '../../core/transport.ts'
import { isMomentary, type RedisConnection, redisScript, within } from '../families/redis/index.ts'
import { BEGIN } from './begin.ts'
import { changesKey, countKey, tokenKey } from './keys.ts'

/** Changes that are kept for nodes that were away. */
const KEPT = '10000'
/** Changes that wait for a Redis that is away; past it they become one that says that everything may have changed. */
const MAX_WAITING = 10_000
/** Changes that leave together. */
const BATCH = 100
/** How long it is known that a batch was told, milliseconds: an attempt whose answer was lost is made again. */
const TOKEN_LIFETIME = '60000'
const PAUSE = 250

/** KEYS: changes, their count, token. ARGV: how many are kept, lifetime of the token, the changes. */
const PUBLISH = redisScript(`
if not redis.call('SET', KEYS[3], '1', 'NX', 'PX', ARGV[2]) then return 0 end
${BEGIN}
for index = 3, #ARGV do
  local number = redis.call('INCR', KEYS[2])
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'n', number, 'c', ARGV[index])
end
return 1
`)

interface Waiting {
  readonly change: Change
  readonly acknowledged: () => void
  /** It waits on; whoever made it does not. */
  readonly late: (cause: unknown) => void
}

export interface Outbox {
  /** Resolves once Redis has it. Rejects where that takes longer than a command may, or Redis is known to be away. */
  publish(change: Change): Promise<void>
  /** Gives what waits as long as a command may take. */
  close(): Promise<void>
}

export function createOutbox(redis: RedisConnection, log: Logger): Outbox {
  const keys = [changesKey(redis), countKey(redis)]
  let waiting: Waiting[] = []
  let sending: Promise<void> | undefined
  let closed = false

  /** Tried until Redis has it: the token says whether an attempt that was not answered got there. */
  async function send(batch: readonly Waiting[]) {
    const token = tokenKey(redis, randomBytes(12).toString('base64url'))
    const changes = batch.map(({ change }) => JSON.stringify(change))
    while (!closed) {
      try {
        await redis.evaluate(PUBLISH, [...keys, token], [KEPT, TOKEN_LIFETIME, ...changes])
        for (const { acknowledged } of batch) acknowledged()
        return
      } catch (err) {
        log.debug({ err }, 'changes wait for Redis')
        if (!isMomentary(err)) for (const { late } of [...batch, ...waiting]) late(err)
        await pause(PAUSE, undefined, { ref: false })
      }
    }
  }

  async function sendAll() {
    // What one handler changes leaves together.
    await undefined
    while (waiting.length > 0 && !closed) await send(waiting.splice(0, BATCH))
    sending = undefined
  }

  function add(change: Change): Promise<void> {
    return new Promise((acknowledged, late) => {
      if (closed) return late(new Error('the host is closed'))
      if (waiting.length >= MAX_WAITING) {
        const full = new Error('too many changes wait for Redis: clients will be told that everything may have changed')
        for (const other of waiting) other.late(full)
        waiting = [{ change: { kind: 'missed' }, acknowledged, late }]
      } else waiting.push({ change, acknowledged, late })
      sending ??= sendAll()
    })
  }

  return {
    publish: change => within(add(change), redis.commandTimeout),
    async close() {
      if (sending && redis.healthy) {
        await within(sending, redis.commandTimeout).catch(err =>
          log.warn({ reason: errorText(err) }, 'stopped before Redis had every change'),
        )
      }
      closed = true
    },
  }
}
