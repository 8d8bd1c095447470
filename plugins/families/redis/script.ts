// A Lua script as Redis knows it. For everything that does several things at Redis in one step.
import { createHash } from 'node:crypto'

/** A Lua script and the name that Redis keeps it by. */
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

/** Whole: one round trip, also at a Redis that has just begun. */
export const evaluateWhole = (
  client: Pick<Evaluating, 'eval'>,
  { source }: RedisScript,
  keys: readonly string[],
  args: readonly string[],
): Promise<unknown> => client.eval(source, { keys: [...keys], arguments: [...args] })

/** By its digest, or whole where Redis does not know it. */
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
