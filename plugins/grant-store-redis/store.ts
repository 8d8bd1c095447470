// The grant store in Redis: one script for each operation.
import { checkGrantTtl, type GrantStore, grantKindOf } from '../../core/auth.ts'
import { HostError } from '../../core/index.ts'
import { evaluateInTime, isMomentary, type RedisConnection, type RedisScript } from '../families/redis/index.ts'
import { ADD, DELETE, INDEX, JOIN, LEAVE, MEMBERS, REPLACE, SET, TAKE } from './scripts.ts'

/** Limits of pending entries on all nodes; the oldest are removed first. */
export interface PendingBounds {
  readonly entries: number
  readonly bytes: number
}

const PENDING: PendingBounds = { entries: 50_000, bytes: 128 * 1_048_576 }

type Reply = readonly string[]

const tooLarge = (bytes: number) =>
  new HostError('unavailable', {
    detail: 'what is to be kept for this login is too large',
    reason: `an entry does not fit into the ${bytes} bytes that all pending ones may have`,
  })

/** Reads can be repeated. */
const readTwice = <Value>(read: () => Promise<Value>): Promise<Value> =>
  read().catch(error => {
    if (!isMomentary(error)) throw error
    return read()
  })

class RedisGrantStore implements GrantStore {
  readonly shared = true
  readonly #redis: RedisConnection
  readonly #bounds: PendingBounds

  constructor(redis: RedisConnection, bounds: PendingBounds) {
    this.#redis = redis
    this.#bounds = bounds
  }

  /** Pending keys share a hash tag, because they are counted together. */
  #name(key: string, what: 'text' | 'set') {
    if (grantKindOf(key) === 'pending') return this.#redis.key('grants', '{pending}', what, key)
    return this.#redis.key('grants', `{${key}}`, what)
  }

  #index(key: string) {
    if (grantKindOf(key) === 'granted') return []
    return INDEX.map(part => this.#redis.key('grants', '{pending}', part))
  }

  async #ask(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const { entries, bytes } = this.#bounds
    const reply = await evaluateInTime(this.#redis, script, keys, [entries, bytes, ...args].map(String))
    if (reply[0] === 'full') throw tooLarge(bytes)
    return reply
  }

  #askText(script: RedisScript, key: string, ...args: readonly (string | number)[]) {
    return this.#ask(script, [this.#name(key, 'text'), ...this.#index(key)], args)
  }

  #askSet(script: RedisScript, key: string, ...args: readonly (string | number)[]) {
    return this.#ask(script, [this.#name(key, 'set'), ...this.#index(key)], args)
  }

  async get(key: string) {
    const name = this.#name(key, 'text')
    return (await readTwice(() => this.#redis.run(client => client.get(name)))) ?? undefined
  }

  async set(key: string, value: string, ttl: number) {
    await this.#askText(SET, key, checkGrantTtl(ttl), value)
  }

  async add(key: string, value: string, ttl: number) {
    const [word] = await this.#askText(ADD, key, checkGrantTtl(ttl), value)
    return word === 'done'
  }

  async replace(key: string, from: string, to: string, ttl: number) {
    const [word] = await this.#askText(REPLACE, key, checkGrantTtl(ttl), to, from)
    return word === 'done'
  }

  async take(key: string) {
    const [word, text] = await this.#askText(TAKE, key)
    return word === 'done' ? text : undefined
  }

  async delete(...keys: readonly string[]) {
    const names = (key: string) => [this.#name(key, 'text'), this.#name(key, 'set')]
    const together = new Map<string, { readonly index: readonly string[]; readonly names: string[] }>()
    for (const key of keys) {
      const place = grantKindOf(key) === 'pending' ? 'pending' : key
      const found = together.get(place) ?? { index: this.#index(key), names: [] }
      found.names.push(...names(key))
      together.set(place, found)
    }
    await Promise.all(
      [...together.values()].map(({ index, names: [first = '', ...others] }) =>
        this.#ask(DELETE, [first, ...index], others),
      ),
    )
  }

  async join(set: string, member: string, ttl: number, most: number) {
    const [, size] = await this.#askSet(JOIN, set, checkGrantTtl(ttl), member, most)
    return Number(size)
  }

  async leave(set: string, member: string) {
    await this.#askSet(LEAVE, set, member)
  }

  async members(set: string) {
    const [, ...members] = await readTwice(() => this.#askSet(MEMBERS, set))
    return members
  }
}

export const createRedisGrantStore = (redis: RedisConnection, pending = PENDING): GrantStore =>
  new RedisGrantStore(redis, pending)
