// The commands that plugins can send, all supported by Redis 6.2.
import type { RedisClientType } from '@redis/client'

const COMMANDS = [
  'del',
  'eval',
  'evalSha',
  'exists',
  'get',
  'hDel',
  'hGet',
  'hGetAll',
  'incr',
  'info',
  'pExpire',
  'pTTL',
  'sAdd',
  'set',
  'time',
  'unlink',
  'xAdd',
  'xRead',
  'xTrim',
] as const satisfies ReadonlyArray<keyof RedisClientType>

/** In a cluster all keys of a command need one hash tag. */
export type RedisCommands = Pick<RedisClientType, (typeof COMMANDS)[number]>

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

/** Counts batches: node-redis writes once per turn of the event loop. */
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
