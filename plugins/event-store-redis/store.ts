// The event store in Redis, with idempotent appends. Lost data is reported as a gap.
import { performance } from 'node:perf_hooks'
import type { EventStore, StoredEvent, StoredEvents, StreamWriter } from '../../core/plugin.ts'
import { StreamFenced, type StreamState } from '../../core/transport.ts'
import type { RedisConnection, RedisScript } from '../families/redis/index.ts'
import { isMomentary, RedisTimeout, unavailable } from '../families/redis/index.ts'
import type { StreamBounds } from '../families/stores/index.ts'
import { AFTER, APPEND, CLAIM, DROP_SESSION, DROP_STREAM, FINISH, OPEN, STATE } from './scripts.ts'

/** A single writer. */
const SOLE: StreamWriter = { epoch: 0, facts: '' }
/** Milliseconds, doubled for each attempt. */
const FIRST_PAUSE = 20
const LONGEST_PAUSE = 320

type Reply = readonly string[]

const pause = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds))

function readState([kind, epoch, last, facts = '', bus = '', finished]: Reply): StreamState | undefined {
  if (kind !== 'state') return undefined
  return { epoch: Number(epoch), last: Number(last), facts, bus, finished: finished === '1' }
}

function readEvents([kind, ...entries]: Reply, seq: number): StoredEvents {
  if (kind !== 'events') return undefined
  const events: StoredEvent[] = []
  for (let index = 0; index < entries.length; index += 2) {
    events.push({ seq: Number.parseInt(entries[index] ?? '', 10), message: entries[index + 1] ?? '' })
  }
  return events.every((event, index) => event.seq === seq + 1 + index) ? events : undefined
}

/** After a fail-over two writers can have the same epoch. */
const numberTaken = (number: number) =>
  new Error(
    `another message of this stream has the number ${number}: Redis has lost which node writes the stream, as a fail-over ` +
      'does, and two nodes wrote',
  )

export function createRedisEventStore(redis: RedisConnection, bounds: StreamBounds): EventStore {
  const names = (session: string) => redis.sessionKey(session, 'streams')
  const events = (session: string, stream: string) => redis.sessionKey(session, 'events', stream)
  const hash = (session: string, stream: string) => redis.sessionKey(session, 'stream', stream)

  const ask = async (script: RedisScript, keys: readonly string[], args: readonly string[], timeout?: number) =>
    (await redis.evaluate(script, keys, args, timeout)) as Reply

  /** An attempt with a deadline by the Redis clock; undefined if it was late. */
  async function attempt(script: RedisScript, keys: readonly string[], args: readonly string[], left: number) {
    const now = redis.now()
    const deadline = Math.floor((now ?? 0) + left) - 1
    const reply = now === undefined ? ['late'] : await ask(script, keys, [String(deadline), ...args], left)
    if (reply[0] !== 'late') return reply
    await redis.run(() => redis.askTime(), left)
    return undefined
  }

  /** Retries after lost replies until the time-out. */
  async function change(script: RedisScript, keys: readonly string[], args: readonly string[]): Promise<Reply> {
    const end = performance.now() + redis.commandTimeout
    for (let wait = FIRST_PAUSE; ; wait = Math.min(2 * wait, LONGEST_PAUSE)) {
      const left = end - performance.now()
      if (left <= 0) throw unavailable(new RedisTimeout(redis.commandTimeout))
      try {
        const reply = await attempt(script, keys, args, left)
        if (reply?.[0] === 'fenced') throw new StreamFenced()
        if (reply) return reply
      } catch (error) {
        if (!isMomentary(error) || end - performance.now() <= wait) throw error
        await pause(wait)
      }
    }
  }

  const keysOf = (session: string, stream: string) => [events(session, stream), hash(session, stream), names(session)]

  function changeBy(script: RedisScript, session: string, stream: string, writer: StreamWriter, ...more: string[]) {
    const { epoch, facts, bus = '', finished } = writer
    const args = [stream, String(bounds.ttl), String(epoch), facts, bus, finished ? '1' : '']
    return change(script, keysOf(session, stream), [...args, ...more])
  }

  return {
    async append(session, stream, message, known, writer = SOLE) {
      const limits = [String(bounds.maxEvents), String(bounds.maxBytes)]
      const [kind, seq] = await changeBy(APPEND, session, stream, writer, message, String(known), ...limits)
      if (kind !== 'stored') throw numberTaken(known + 1)
      return Number(seq)
    },
    async after(session, stream, seq, most) {
      const args = [String(seq), most === undefined ? '' : String(most)]
      const reply = await ask(AFTER, [events(session, stream), hash(session, stream)], args)
      return readEvents(reply, seq)
    },
    async drop(session, stream) {
      if (stream === undefined) {
        await ask(DROP_SESSION, [names(session)], [events(session, ''), hash(session, '')])
      } else {
        await ask(DROP_STREAM, [names(session), events(session, stream), hash(session, stream)], [stream])
      }
    },
    shared: {
      async open(session, stream, writer, known = 0) {
        await changeBy(OPEN, session, stream, writer, String(known))
      },
      async state(session, stream) {
        return readState(await ask(STATE, [hash(session, stream)], []))
      },
      async claim(session, stream, writer) {
        return readState(await changeBy(CLAIM, session, stream, { epoch: writer.epoch, facts: writer.facts }))
      },
      async finish(session, stream, writer) {
        await changeBy(FINISH, session, stream, writer)
      },
    },
  }
}
