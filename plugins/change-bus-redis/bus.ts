// The change bus that every node shares: a Redis Stream of changes, each with its number. A number that is not one more
// than the last says that changes are missing, and then everybody is told that everything may have changed.

import type { Logger } from '../../core/index.ts'
import type { Change, ChangeBus, ChangeHistory } from '../../core/transport.ts'
import { type RedisConnection, redisScript } from '../families/redis/index.ts'
import { BEGIN } from './begin.ts'
import { changesKey, countKey } from './keys.ts'
import { createOutbox } from './outbox.ts'

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
