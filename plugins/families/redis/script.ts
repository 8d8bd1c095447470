// Lua scripts of Redis, and readers for their replies.
import { createHash } from 'node:crypto'

export interface RedisScript {
  readonly source: string
  readonly sha: string
}

export const redisScript = (source: string): RedisScript => ({
  source,
  sha: createHash('sha1').update(source).digest('hex'),
})

interface Evaluating {
  evalSha(sha: string, given: { keys: string[]; arguments: string[] }): Promise<unknown>
  eval(source: string, given: { keys: string[]; arguments: string[] }): Promise<unknown>
}

/** By source: one round trip on a restarted Redis. */
export const evaluateWhole = (
  client: Pick<Evaluating, 'eval'>,
  { source }: RedisScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> => client.eval(source, { keys: [...keys], arguments: [...args] })

export async function evaluateOn(
  client: Evaluating,
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

export function fieldsOf(flat: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  for (let index = 0; index < flat.length; index += 2) fields.set(flat[index] ?? '', flat[index + 1] ?? '')
  return fields
}

export interface StreamEntry {
  readonly id: string
  readonly message: Readonly<Record<string, string>>
}

/** The entries of one stream in a reply to XREAD: pairs or an object, depending on the protocol version. */
export function entriesOf(reply: unknown, key: string): readonly StreamEntry[] {
  if (reply === null || typeof reply !== 'object') return []
  if (!Array.isArray(reply)) return (reply as Record<string, readonly StreamEntry[]>)[key] ?? []
  return reply.find(stream => stream?.name === key)?.messages ?? []
}
