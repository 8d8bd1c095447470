// The commands that plugins can send, all supported by Redis 6.2.
import { createHash } from 'node:crypto'

interface ScriptInput {
  keys?: string[]
  arguments?: string[]
}

/**
 * In a cluster all keys of a command need one hash tag. Declared here and not by @redis/client, because declarations of this
 * package must compile without it.
 */
export interface RedisCommands {
  eval(script: string, input?: ScriptInput): Promise<unknown>
  evalSha(digest: string, input?: ScriptInput): Promise<unknown>
  exists(keys: string | string[]): Promise<number>
  get(key: string): Promise<string | null>
  incr(key: string): Promise<number>
  info(section?: string): Promise<string>
  pExpire(key: string, milliseconds: number): Promise<number>
  set(key: string, value: string, options?: object): Promise<string | null>
  /** Seconds and microseconds. */
  time(): Promise<readonly string[]>
  unlink(keys: string | string[]): Promise<number>
  xAdd(key: string, id: string, message: Record<string, string>, options?: object): Promise<string | null>
  xRead(streams: object, options?: object): Promise<unknown>
  xTrim(key: string, strategy: 'MAXLEN' | 'MINID', threshold: number, options?: object): Promise<number>
}

export function createCommands(
  client: () => RedisCommands | Promise<RedisCommands>,
  sending = () => {},
): RedisCommands {
  return new Proxy({} as RedisCommands, {
    get: (_, name: keyof RedisCommands) =>
      async function sendCommand(...args: unknown[]) {
        sending()
        const found = client()
        const target = found instanceof Promise ? await found : found
        return (target[name] as (...args: unknown[]) => unknown).apply(target, args)
      },
  })
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

export interface RedisScript {
  readonly source: string
  readonly sha: string
}

export const redisScript = (source: string): RedisScript => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})

export async function evaluateOn(
  client: Pick<RedisCommands, 'eval' | 'evalSha'>,
  { sha, source }: RedisScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> {
  const given = { keys: [...keys], arguments: [...args] }
  try {
    return await client.evalSha(sha, given)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    return await client.eval(source, given)
  }
}

export interface StreamEntry {
  readonly id: string
  readonly message: Readonly<Record<string, string>>
}

/** Returns the entries of one stream in a reply to XREAD: pairs or an object, depending on the protocol version. */
export function entriesOf(reply: unknown, key: string): readonly StreamEntry[] {
  if (reply === null || typeof reply !== 'object') return []
  if (!Array.isArray(reply)) return (reply as Record<string, readonly StreamEntry[]>)[key] ?? []
  return reply.find(stream => stream?.name === key)?.messages ?? []
}
