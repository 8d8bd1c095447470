// Lua scripts.
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

/** By digest, or by source if Redis does not know it. */
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
