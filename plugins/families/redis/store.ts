// The store in Redis. A partition is one hash slot; a transaction and a read are one script each.
import { hash } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Found, Outcome, Query, ReadAnswers, Step, Store } from '../../../core/store.ts'
import { storeUnavailable } from '../../../core/transport.ts'
import type { RedisScript } from './commands.ts'
import type { RedisConnection } from './connection.ts'
import { isMomentary, isRefused, RedisTimeout } from './failures.ts'
import { READ, TRANSACT } from './store-scripts.ts'

/** First retry delay, milliseconds, doubled for each attempt. */
const MIN_PAUSE = 20
const MAX_PAUSE = 320

/** Hash tags cannot be empty or contain a brace. */
const hashTag = (partition: string) =>
  /^[\w.:-]+$/.test(partition) ? partition : `#${hash('sha256', partition, 'base64url')}`

const parseScore = (text: string | undefined) =>
  text?.endsWith('inf') ? (text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY) : Number(text)

const wellFormedText = (text: string) => text.replace(/\p{Surrogate}/gu, '\ufffd')

const wellFormed = (value: unknown): unknown => {
  if (typeof value === 'string') return wellFormedText(value)
  if (Array.isArray(value)) return value.map(wellFormed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [wellFormedText(key), wellFormed(one)]))
}

/** Replaces lone surrogates like other adapters, because Lua refuses them. */
function writeJson(parts: readonly (Step | Query)[]): string {
  const text = JSON.stringify(parts)
  return text.includes('\\ud') ? JSON.stringify(wellFormed(parts)) : text
}

function readFields(flat: readonly string[]) {
  const fields: Array<readonly [string, string]> = []
  let version = 0
  for (let index = 0; index < flat.length; index += 2) {
    const [name = '', value = ''] = [flat[index], flat[index + 1]]
    if (name === '#') version = Number(value)
    else fields.push([name.slice(1), value])
  }
  return { version, fields: Object.fromEntries(fields) }
}

type Reply = readonly [string?, string?, (readonly string[])?]

function readFound(step: Step | undefined, [first = '', expires = '', flat]: Reply): Found {
  if (!step || !('record' in step)) return step && 'log' in step ? { last: Number(first) } : { size: Number(first) }
  return {
    version: Number(first),
    ...(flat === undefined ? {} : { fields: readFields(flat).fields }),
    ...(expires === '' ? {} : { expires: Number(expires) }),
  }
}

type Answer = readonly [string?, (readonly string[])?]

function readAnswer(query: Query, [first, list]: Answer, now: number) {
  if ('sortedSet' in query) {
    const members = Array.from({ length: (list ?? []).length / 2 }, (_, index) => ({
      member: list?.[2 * index] ?? '',
      score: parseScore(list?.[2 * index + 1]),
    }))
    return { members, size: Number(first), now }
  }
  if (first === undefined) return undefined
  if ('log' in query) return { last: Number(first), messages: list }
  return { ...readFields(list ?? []), expires: first === '' ? undefined : Number(first), now }
}

/**
 * True if steps that Redis possibly applied can be sent again. A numbered append changes nothing the second time; other
 * conditions could fail because of the first attempt.
 */
const isRepeatable = (steps: readonly Step[]) =>
  steps.some(step => 'log' in step && step.after !== undefined && (step.append ?? []).length > 0) &&
  steps.every(step =>
    'record' in step
      ? step.version === undefined && step.exists !== false && step.add === undefined && !step.delete
      : 'sortedSet' in step
        ? step.most === undefined && step.has === undefined && step.lacks === undefined
        : step.after !== undefined || step.append === undefined,
  )

export function redisStore(redis: RedisConnection): Store {
  const createKeys = (partition: string, parts: readonly (Step | Query)[]) =>
    parts.map(part => {
      const [kind, key] =
        'record' in part ? ['r', part.record] : 'log' in part ? ['l', part.log] : ['s', part.sortedSet]
      return redis.key(`{${hashTag(partition)}}`, kind, key)
    })

  /** Repeats an attempt until the time-out; `left`: milliseconds. */
  async function retry<Value>(
    attempt: (left: number) => Promise<Value | undefined>,
    canRepeat: (error: unknown) => boolean,
  ): Promise<Value> {
    const end = performance.now() + redis.commandTimeout
    for (let wait = MIN_PAUSE; ; wait = Math.min(2 * wait, MAX_PAUSE)) {
      const left = end - performance.now()
      if (left <= 0) throw storeUnavailable({ cause: new RedisTimeout(redis.commandTimeout) })
      try {
        const value = await attempt(left)
        if (value !== undefined) return value
      } catch (error) {
        if (!isMomentary(error) || !canRepeat(error) || end - performance.now() <= wait) throw error
        await pause(wait)
      }
    }
  }

  /** Evaluates a script that does nothing after the deadline. Undefined if the Redis clock is not known well enough. */
  async function evaluateInTime(script: RedisScript, keys: readonly string[], args: readonly string[], left: number) {
    const now = redis.now()
    if (now !== undefined) {
      const deadline = String(Math.floor(now + left) - 1)
      const reply = (await redis.evaluate(script, keys, [deadline, ...args], left)) as readonly unknown[]
      if (reply[0] !== 'late') return reply
    }
    await redis.run(() => redis.readTime(), left)
    return undefined
  }

  return {
    shared: true,
    async transact(partition, steps): Promise<Outcome> {
      const keys = createKeys(partition, steps)
      const args = [writeJson(steps)]
      const repeatable = isRepeatable(steps)
      const reply = await retry(
        left => evaluateInTime(TRANSACT, keys, args, left),
        error => repeatable || isRefused(error),
      )
      const [kind, now, ...rest] = reply as [string, string, ...Reply[]]
      if (kind === 'done') {
        return { done: true, results: steps.map((step, index) => readFound(step, rest[index] ?? [])), now: Number(now) }
      }
      const [step, found] = rest as unknown as [string, Reply]
      return { done: false, step: Number(step), found: readFound(steps[Number(step)], found), now: Number(now) }
    },
    async read<const Queries extends readonly Query[]>(partition: string, queries: Queries) {
      const args = [writeJson(queries)]
      const [now, ...answers] = await retry(
        async left => (await redis.evaluate(READ, createKeys(partition, queries), args, left)) as [string, ...Answer[]],
        () => true,
      )
      const found = queries.map((query, index) => readAnswer(query, answers[index] ?? [], Number(now)))
      return found as unknown as ReadAnswers<Queries>
    },
    onReturn(listener) {
      let wasReady = redis.healthy
      redis.onChange(healthy => {
        if (healthy && wasReady) listener()
        wasReady ||= healthy
      })
    },
  }
}
