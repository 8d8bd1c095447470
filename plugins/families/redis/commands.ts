// The commands that plugins may send: what Redis 6.2 has, and no more. For connection.ts, which hands them out.
// Each counts the batch that it is written with: what is sent in one turn of the loop leaves together.
import type { RedisClientType } from '@redis/client'

/** Names as node-redis has them; none of them is newer than Redis 6.2. What takes several steps is a script. */
const COMMANDS = [
  'del',
  'eval',
  'evalSha',
  'exists',
  'get',
  'hDel',
  'hGet',
  'hGetAll',
  'hSet',
  'hmGet',
  'incr',
  'info',
  'pExpire',
  'pTTL',
  'sAdd',
  'sCard',
  'sMembers',
  'sRem',
  'set',
  'time',
  'unlink',
  'xAdd',
  'xDel',
  'xLen',
  'xRange',
  'xRead',
  'xRevRange',
  'xTrim',
  'zAdd',
  'zCard',
  'zRange',
  'zRem',
  'zScore',
] as const satisfies ReadonlyArray<keyof RedisClientType>

/** The same for one server and for a cluster, where all keys of one command need one hash tag. */
export type RedisCommands = Pick<RedisClientType, (typeof COMMANDS)[number]>

/** Commands of the client that there is when one is sent, or comes; `sending` hears of each before it leaves. */
export function createCommands(
  client: () => RedisCommands | Promise<RedisCommands>,
  sending = () => {},
): RedisCommands {
  const send = (name: keyof RedisCommands) =>
    async function sendCommand(...args: unknown[]) {
      sending()
      const found = client()
      const target = found instanceof Promise ? await found : found
      return (target[name] as (...args: unknown[]) => unknown).apply(target, args)
    }
  return Object.fromEntries(COMMANDS.map(name => [name, send(name)])) as unknown as RedisCommands
}

/** Counts turns of the loop in which something was sent: node-redis writes once a turn, whatever there is. */
export function countBatches() {
  let batches = 0
  let open = false
  return {
    get count() {
      return batches
    },
    sending() {
      if (open) return
      open = true
      batches++
      setImmediate(() => {
        open = false
      })
    },
  }
}
