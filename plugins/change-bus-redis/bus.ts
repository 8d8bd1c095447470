// The change bus of all nodes: a Redis Stream of numbered changes. A gap becomes `missed`.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { errorText, type Logger } from '../../core/plugin.ts'
import type { Change, ChangeBus, ChangeHistory } from '../../core/transport.ts'
import { isMomentary, type RedisConnection, redisScript, within } from '../families/redis/index.ts'

/** KEYS[2]: the number of the last change. Starts with the time, so that numbers of a lost bus do not continue. */
const BEGIN = `
if redis.call('EXISTS', KEYS[2]) == 0 then
  local time = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
`

const TAG = '{bus}'

export const changesKey = (redis: RedisConnection) => redis.key(TAG, 'changes')
const countKey = (redis: RedisConnection) => redis.key(TAG, 'count')
export const inboxKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'inbox', node)
/** Exists while the node runs. */
export const nodeKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'node', node)
/** Exists for a while after a node has left. */
export const leftKey = (redis: RedisConnection, node: string) => redis.key(TAG, 'left', node)
const tokenKey = (redis: RedisConnection, token: string) => redis.key(TAG, 'token', token)

/** KEYS: changes, count. ARGV: an id. Returns the count, then id, number and change of later entries. */
const SINCE = redisScript(`
local reply = {redis.call('GET', KEYS[2]) or '0'}
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+')) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][2]
  reply[#reply + 1] = entry[2][4]
end
return reply
`)

/** KEYS: changes, count. ARGV: an id. Returns the last id, the count, and the number of the next change or ''. */
const LOCATE = redisScript(`
${BEGIN}
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local next = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
return {last and last[1] or '0-0', redis.call('GET', KEYS[2]), next and next[2][2] or ''}
`)

interface Place {
  readonly id: string
  readonly number: number
}

const writePlace = ({ id, number }: Place) => `${id}/${number}`

function readPlace(text: string): Place {
  const [id = '0-0', number = '0'] = text.split('/')
  return { id, number: Number(number) }
}

/** Ids are compared as numbers. */
function isAfter(one: string, other: string): boolean {
  const [a, b] = [one, other].map(place => readPlace(place).id.split('-').map(Number))
  const [time = 0, counter = 0] = a ?? []
  const [otherTime = 0, otherCounter = 0] = b ?? []
  return time === otherTime ? counter > otherCounter : time > otherTime
}

export interface RedisChangeBus extends ChangeBus {
  readonly history: ChangeHistory
  readonly lastId: string
  locate(): Promise<void>
  tell(id: string, number: number, text: string): void
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
      if (position !== before) return this.locate()
      const isWhole = next === '' ? Number(count) === before?.number : Number(next) === (before?.number ?? 0) + 1
      if (before && isWhole) return
      position = { id, number: Number(count) }
      // Redis lost the bus.
      if (before) dispatch({ kind: 'missed' })
    },
    tell(id, number, text) {
      if (position && !isAfter(id, position.id)) return
      const expected = (position?.number ?? 0) + 1
      position = { id, number }
      if (number !== expected) dispatch({ kind: 'missed' })
      const change: Change = JSON.parse(text)
      // `missed` has no position.
      if (change.kind === 'missed') dispatch(change)
      else dispatch(change, writePlace(position))
    },
    close: outbox.close,
  }
}

const KEPT = '10000'
/** Maximum queued changes; more become one `missed`. */
const MAX_WAITING = 10_000
const BATCH = 100
/** Milliseconds for which a retried batch is recognised. */
const TOKEN_LIFETIME = '60000'
const PAUSE = 250

/** KEYS: changes, count, token. ARGV: maximum length, lifetime of the token, changes. */
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
  /** The change stays queued, its caller does not wait. */
  readonly late: (cause: unknown) => void
}

function createOutbox(redis: RedisConnection, log: Logger) {
  const keys = [changesKey(redis), countKey(redis)]
  let waiting: Waiting[] = []
  let sending: Promise<void> | undefined
  let closed = false

  /** Retries; the token reveals a batch whose reply was lost. */
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
    // Collects the changes of one turn.
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
    publish: (change: Change): Promise<void> => within(add(change), redis.commandTimeout),
    async close() {
      if (sending && redis.healthy) {
        await within(sending, redis.commandTimeout).catch(err =>
          log.warn({ code: 'MH2310', reason: errorText(err) }, 'stopped before Redis had every change'),
        )
      }
      closed = true
    },
  }
}
