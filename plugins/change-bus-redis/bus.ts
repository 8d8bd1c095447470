// The change bus of all nodes: a Redis Stream of numbered changes. After a gap in the numbers, everything may have changed.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { errorText, type Logger } from '../../core/index.ts'
import type { Change, ChangeBus, ChangeHistory } from '../../core/transport.ts'
import { isMomentary, type RedisConnection, redisScript, within } from '../families/redis/index.ts'

/** KEYS[2]: the count of changes. It begins with the time: numbers of a bus that Redis forgot are never gone on with. */
const BEGIN = `
if redis.call('EXISTS', KEYS[2]) == 0 then
  local time = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
`

const TAG = '{bus}'

export const changesKey = (redis: RedisConnection) => redis.key(TAG, 'changes')
/** How many changes there have been. */
const countKey = (redis: RedisConnection) => redis.key(TAG, 'count')
export const inboxKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'inbox', node)
/** There while the node is. */
export const nodeKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'node', node)
/** There for a while after the node went by itself. */
export const leftKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'left', node)
const tokenKey = (redis: RedisConnection, token: string) => redis.key(TAG, 'token', token)

/** KEYS: changes, their count. ARGV: the id after which. Gives the count, then id, number and change by turns. */
const SINCE = redisScript(`
local reply = {redis.call('GET', KEYS[2]) or '0'}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+')) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][2]
  reply[#reply + 1] = entry[2][4]
end
return reply
`)

/**
 * KEYS: changes, their count. ARGV: the id after which is read on. Gives the id of the last change, the count, and the
 * number of the first change after that id ('': none).
 */
const LOCATE = redisScript(`
${BEGIN}
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local next = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
return {last and last[1] or '0-0', redis.call('GET', KEYS[2]), next and next[2][2] or ''}
`)

/** Where a change is: the id of its entry, and its number. */
interface Place {
  readonly id: string
  readonly number: number
}

const writePlace = ({ id, number }: Place) => `${id}/${number}`

function readPlace(text: string): Place {
  const [id = '0-0', number = '0'] = text.split('/')
  return { id, number: Number(number) }
}

/** Ids are times and counters: compared as numbers, not as text. */
function isAfter(one: string, other: string): boolean {
  const [a, b] = [one, other].map(place => readPlace(place).id.split('-').map(Number))
  const [time = 0, counter = 0] = a ?? []
  const [otherTime = 0, otherCounter = 0] = b ?? []
  return time === otherTime ? counter > otherCounter : time > otherTime
}

export interface RedisChangeBus extends ChangeBus {
  readonly history: ChangeHistory
  /** The id after which this node reads. */
  readonly lastId: string
  /** Finds out where the bus is: at the start, and whether it is another one after Redis was away. */
  locate(): Promise<void>
  /** A change that was read. */
  tell(id: string, number: number, text: string): void
  /** Gives changes that wait as long as a command may take. */
  close(): Promise<void>
}

export function createBus(redis: RedisConnection, log: Logger): RedisChangeBus {
  const listeners = new Set<(change: Change, place?: string) => void>()
  const outbox = createOutbox(redis, log)
  const keys = [changesKey(redis), countKey(redis)]
  let position: Place | undefined

  function dispatch(change: Change, place?: string) {
    for (const listener of [...listeners]) listener(change, place)
  }

  return {
    shared: true,
    publish: outbox.publish,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    get lastId() {
      return position?.id ?? '0-0'
    },
    history: {
      get position() {
        return position ? writePlace(position) : ''
      },
      isAfter,
      async since(text) {
        const place = readPlace(text)
        const [count, ...entries] = (await redis.evaluate(SINCE, keys, [place.id])) as string[]
        const changes: Array<{ change: Change; place: string }> = []
        let { number } = place
        for (let index = 0; index < entries.length; index += 3) {
          const [id = '', next = '', text = ''] = entries.slice(index, index + 3)
          if (Number(next) !== ++number) return undefined
          changes.push({ change: JSON.parse(text), place: writePlace({ id, number }) })
        }
        return Number(count) === number ? changes : undefined
      },
    },
    async locate() {
      const before = position
      const reply = (await redis.evaluate(LOCATE, keys, [before?.id ?? '0-0'])) as string[]
      const [id = '0-0', count = '', next = ''] = reply
      // A change was told meanwhile: what was asked about is not where this node is.
      if (position !== before) return this.locate()
      const isWhole = next === '' ? Number(count) === before?.number : Number(next) === (before?.number ?? 0) + 1
      if (before && isWhole) return
      position = { id, number: Number(count) }
      // Redis has lost what it had, this bus too: another one has begun.
      if (before) dispatch({ kind: 'missed' })
    },
    tell(id, number, text) {
      // Asked for before it was found out where the bus is now.
      if (position && !isAfter(id, position.id)) return
      const expected = (position?.number ?? 0) + 1
      position = { id, number }
      if (number !== expected) dispatch({ kind: 'missed' })
      const change: Change = JSON.parse(text)
      // One that stands for many has no place of its own: everybody is told of all of it.
      if (change.kind === 'missed') dispatch(change)
      else dispatch(change, writePlace(position))
    },
    close: outbox.close,
  }
}

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

interface Outbox {
  /** Resolves once Redis has it. Rejects where that takes longer than a command may, or Redis is known to be away. */
  publish(change: Change): Promise<void>
  /** Gives what waits as long as a command may take. */
  close(): Promise<void>
}

function createOutbox(redis: RedisConnection, log: Logger): Outbox {
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
