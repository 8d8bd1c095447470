// The bus in Redis. All nodes share a stream of numbered texts. Each node has an inbox (a stream) and a key with a TTL.
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { InternalHost } from '../../../core/internal.ts'
import { errorText, type Logger } from '../../../core/plugin.ts'
import type { Bus } from '../../../core/store.ts'
import { entriesOf, redisScript, type StreamEntry } from './commands.ts'
import type { RedisConnection, RedisReader } from './connection.ts'
import { isMomentary, within } from './failures.ts'

/** Redis commands besides EVAL, including those in scripts. */
export const BUS_COMMANDS = [
  ...(['exists', 'get', 'incr', 'pexpire', 'set', 'time', 'unlink'] as const),
  ...(['xadd', 'xrange', 'xread', 'xrevrange', 'xtrim'] as const),
] as const

/** KEYS[2]: the number of the last text. Starts with the time, so that numbers of a lost bus do not continue. */
const BEGIN = `
if redis.call('EXISTS', KEYS[2]) == 0 then
  local time = redis.call('TIME')
  redis.call('SET', KEYS[2], string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
end
`

/** KEYS: texts, count. ARGV: an id. Returns the count, and this entry and later ones. */
const SINCE = redisScript(`
return {redis.call('GET', KEYS[2]) or '0', redis.call('XRANGE', KEYS[1], ARGV[1], '+')}
`)

/** KEYS: texts, count. ARGV: an id. Returns the last id, the count, and the numbers of the next text and of this one, or ''. */
const LOCATE = redisScript(`
${BEGIN}
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local next = redis.call('XRANGE', KEYS[1], '(' .. ARGV[1], '+', 'COUNT', 1)[1]
local here = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
return {last and last[1] or '0-0', redis.call('GET', KEYS[2]), next and next[2][2] or '', here and here[2][2] or ''}
`)

/**
 * KEYS: texts, count, token. ARGV: maximum length, lifetime of the token, '1' after lost texts, place of this node's last text or
 * '', texts. Returns the last place. Texts that the queue or a failover of Redis lost leave a gap in the numbers.
 */
const PUBLISH = redisScript(`
local known, lost, place = redis.call('GET', KEYS[3]), ARGV[3] == '1', ARGV[4]
if known then return known end
${BEGIN}
if place ~= '' then
  local id, number = string.match(place, '(.+)/(.+)')
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local here = redis.call('XRANGE', KEYS[1], id, id)[1]
  lost = lost or not (first and tonumber(first[2][2]) > tonumber(number) or here and here[2][2] == number)
end
if lost then redis.call('INCR', KEYS[2]) end
for index = 5, #ARGV do
  local number = redis.call('INCR', KEYS[2])
  place = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'n', number, 'c', ARGV[index]) .. '/' .. number
end
redis.call('SET', KEYS[3], place, 'PX', ARGV[2])
return place
`)

/** KEYS: node, inbox. ARGV: text, maximum length, lifetime of the inbox, '1' to send to a silent node too. */
const SEND = redisScript(`
if ARGV[4] ~= '1' and redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], '*', 'm', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return 1
`)

const createKeys = (redis: RedisConnection) => {
  const key = (...parts: string[]) => redis.key('{bus}', ...parts)
  return {
    texts: key('changes'),
    count: key('count'),
    inbox: (node: string) => key('inbox', node),
    /** A key that exists while the node runs. */
    node: (node: string) => key('node', node),
    /** A key that exists for a while after a node has left. */
    left: (node: string) => key('left', node),
    token: (token: string) => key('token', token),
  }
}

interface Position {
  readonly id: string
  readonly number: number
}

const formatPosition = ({ id, number }: Position) => `${id}/${number}`

function parsePosition(text: string): Position {
  const [id = '0-0', number = '0'] = text.split('/')
  return { id, number: Number(number) }
}

function isAfter(one: string, other: string): boolean {
  const ids = [one, other].map(place => parsePosition(place).id.split('-').map(Number))
  const [[time = 0, counter = 0] = [], [otherTime = 0, otherCounter = 0] = []] = ids
  return time === otherTime ? counter > otherCounter : time > otherTime
}

const MAX_TEXTS = '10000'
/** Maximum queued texts; more are lost. */
const MAX_QUEUED = 10_000
const BATCH = 100
/** Milliseconds for which a retried batch is recognised. */
const TOKEN_LIFETIME = '60000'
const PUBLISH_PAUSE = 250

interface QueuedText {
  readonly text: string
  readonly acknowledged: () => void
  /** Called when a text stays queued and its caller no longer waits. */
  readonly fail: (cause: unknown) => void
}

function createOutbox(redis: RedisConnection, log: Logger) {
  const keys = createKeys(redis)
  let waiting: QueuedText[] = []
  let hasLost = false
  let position = ''
  let sending: Promise<void> | undefined
  let closed = false

  /** Sends a batch with retries; the token identifies a batch whose reply was lost. */
  async function send(batch: readonly QueuedText[], afterLoss: boolean) {
    const token = keys.token(randomBytes(12).toString('base64url'))
    const args = [MAX_TEXTS, TOKEN_LIFETIME, afterLoss ? '1' : '', position, ...batch.map(({ text }) => text)]
    while (!closed) {
      try {
        position = String(await redis.evaluate(PUBLISH, [keys.texts, keys.count, token], args))
        for (const { acknowledged } of batch) acknowledged()
        return
      } catch (err) {
        log.debug({ err }, 'messages are queued for Redis')
        if (!isMomentary(err)) for (const { fail } of [...batch, ...waiting]) fail(err)
        await pause(PUBLISH_PAUSE, undefined, { ref: false })
      }
    }
  }

  async function sendAll() {
    // Waits for all texts of one turn.
    await undefined
    while (waiting.length > 0 && !closed) {
      const afterLoss = hasLost
      hasLost = false
      await send(waiting.splice(0, BATCH), afterLoss)
    }
    sending = undefined
  }

  function add(text: string): Promise<void> {
    return new Promise((acknowledged, fail) => {
      if (closed) return fail(new Error('the host is closed'))
      if (waiting.length >= MAX_QUEUED) {
        const full = new Error('too many messages are queued for Redis: all nodes are notified of the loss')
        for (const other of waiting) other.fail(full)
        waiting = []
        hasLost = true
      }
      waiting.push({ text, acknowledged, fail })
      sending ??= sendAll()
    })
  }

  return {
    publish: (text: string): Promise<void> => within(add(text), redis.commandTimeout),
    /** An empty text, so that a gap in the numbers notifies all nodes if Redis has lost the last text. */
    checkLoss: () => void (position !== '' && add('').catch(() => undefined)),
    async close() {
      if (sending && redis.healthy) {
        await within(sending, redis.commandTimeout).catch(err =>
          log.warn({ code: 'MH2310', reason: errorText(err) }, 'stopped before Redis received all changes'),
        )
      }
      closed = true
    },
  }
}

/** Receives the texts for all nodes, in stream order. */
function createFeed(redis: RedisConnection) {
  const { texts, count } = createKeys(redis)
  const listeners = new Set<(text: string | undefined, position?: string) => void>()
  let current: Position | undefined
  let isLocated = false

  function dispatch(text: string | undefined, position?: string) {
    for (const listener of [...listeners]) listener(text, position)
  }

  async function locate(): Promise<void> {
    const before = current
    const reply = (await redis.evaluate(LOCATE, [texts, count], [before?.id ?? '0-0'])) as string[]
    const [id = '0-0', last = '', next = '', here = ''] = reply
    if (current !== before) return locate()
    isLocated = true
    const isKept = before?.id === '0-0' || Number(here) === before?.number
    const isWhole = next === '' ? Number(last) === before?.number : Number(next) === (before?.number ?? 0) + 1
    if (before && isKept && isWhole) return
    current = { id, number: Number(last) }
    // The bus was lost in Redis.
    if (before) dispatch(undefined)
  }

  return {
    get lastId() {
      return current?.id ?? '0-0'
    },
    get position() {
      return current ? formatPosition(current) : ''
    },
    subscribe(listener: (text: string | undefined, position?: string) => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    async since(position: string) {
      const from = parsePosition(position)
      const reply = await redis.evaluate(SINCE, [texts, count], [from.id])
      const [last, entries] = reply as [string, Array<[id: string, fields: string[]]>]
      const found: Array<{ text: string; position: string }> = []
      if (from.id !== '0-0' && entries[0]?.[0] !== from.id) return undefined
      let number = from.number - (from.id === '0-0' ? 0 : 1)
      for (const [id, [, next, , text = '']] of entries) {
        if (Number(next) !== ++number) return undefined
        if (id !== from.id) found.push({ text, position: formatPosition({ id, number }) })
      }
      return Number(last) === number ? found : undefined
    },
    locateOnce: async () => (isLocated ? undefined : locate()),
    forgetPosition() {
      isLocated = false
    },
    deliver({ id, message }: StreamEntry) {
      if (current && !isAfter(id, current.id)) return
      const expected = (current?.number ?? 0) + 1
      current = { id, number: Number(message['n']) }
      if (current.number !== expected) dispatch(undefined)
      dispatch(message['c'] ?? '', formatPosition(current))
    },
  }
}

/** Milliseconds after which a silent node is gone. */
const NODE_LIFETIME = 15_000
const BEAT_INTERVAL = 5_000
/** Milliseconds for which the state of a node is cached. */
const CACHE_TTL = 1_000
const INBOX_LIFETIME = 60_000
const MAX_MESSAGES = '100000'
/** Milliseconds after an outage for which silent nodes count as alive. */
const GRACE_PERIOD = 10_000

function createPresence(redis: RedisConnection, node: string, log: Logger) {
  const keys = createKeys(redis)
  const known = new Map<string, { readonly alive: boolean; readonly at: number }>()
  let heartbeat: NodeJS.Timeout | undefined
  let left = false
  let beatAt = performance.now()
  let uncertainUntil = 0

  const isUncertain = () => performance.now() < uncertainUntil || performance.now() - beatAt > 2 * BEAT_INTERVAL

  async function sendHeartbeat() {
    if (left) return
    try {
      await redis.run(client =>
        Promise.all([
          client.set(keys.node(node), '1', { PX: NODE_LIFETIME }),
          client.pExpire(keys.inbox(node), INBOX_LIFETIME),
        ]),
      )
      if (performance.now() - beatAt > 2 * BEAT_INTERVAL) uncertainUntil = performance.now() + GRACE_PERIOD
      beatAt = performance.now()
    } catch (err) {
      log.debug({ err }, 'the heartbeat of this node was not sent to Redis')
    }
  }

  async function checkAlive(other: string): Promise<boolean> {
    const [exists, hasLeft] = await redis.run(client =>
      Promise.all([client.exists(keys.node(other)), client.exists(keys.left(other))]),
    )
    const alive = exists === 1 || (hasLeft === 0 && isUncertain())
    if (known.size > 1_000) known.clear()
    known.set(other, { alive, at: performance.now() })
    return alive
  }

  return {
    isUncertain,
    async start() {
      let wasReady = redis.healthy
      redis.onChange(healthy => {
        if (!healthy) return
        if (wasReady) uncertainUntil = performance.now() + GRACE_PERIOD
        wasReady = true
        void sendHeartbeat()
      })
      heartbeat = setInterval(() => void sendHeartbeat(), BEAT_INTERVAL).unref()
      if (redis.healthy) await sendHeartbeat()
    },
    async isAlive(other: string) {
      const before = known.get(other)
      return before && performance.now() - before.at < CACHE_TTL ? before.alive : checkAlive(other)
    },
    async leave() {
      if (left) return
      left = true
      clearInterval(heartbeat)
      if (!redis.healthy) return
      await redis
        .run(client =>
          Promise.all([
            client.set(keys.left(node), '1', { PX: INBOX_LIFETIME }),
            client.unlink([keys.node(node), keys.inbox(node)]),
          ]),
        )
        .catch(err => log.debug({ err }, 'the departure of this node was not sent to Redis'))
    },
  }
}

const READ_BATCH = 1_000
const READ_PAUSE = 100

export interface RedisBus extends Bus {
  /** Must be called in `onStart`. */
  start(): Promise<void>
  /** Must be called in `onClose`. */
  close(): Promise<void>
}

export function redisBus(
  redis: RedisConnection,
  { config: { node }, log }: Pick<InternalHost, 'log'> & { readonly config: { readonly node: string } },
): RedisBus {
  const keys = createKeys(redis)
  const inbox = keys.inbox(node)
  const outbox = createOutbox(redis, log)
  const feed = createFeed(redis)
  const presence = createPresence(redis, node, log)
  let receiver: ((text: string) => void) | undefined
  let reader: RedisReader | undefined
  let inboxId = '0-0'
  let closed = false

  function deliver(text: string) {
    try {
      receiver?.(text)
    } catch (err) {
      log.error({ code: 'MH2311', err }, 'failed to process a message of another node (Redis)')
    }
  }

  /** Only this node reads its inbox. */
  function trimInbox() {
    const [time, counter] = inboxId.split('-')
    const next = `${time}-${Number(counter) + 1}`
    redis.client.xTrim(inbox, 'MINID', next as never).catch(err => log.debug({ err }, 'an inbox could not be cleared'))
  }

  async function readOnce({ client }: RedisReader) {
    const streams = [
      { key: inbox, id: inboxId },
      { key: keys.texts, id: feed.lastId },
    ]
    const reply = await client.xRead(streams, { BLOCK: redis.commandTimeout, COUNT: READ_BATCH })
    const messages = entriesOf(reply, inbox)
    for (const { id, message } of messages) {
      inboxId = id
      deliver(message['m'] ?? '')
    }
    if (messages.length > 0) trimInbox()
    // A message that was sent before a text is delivered before it.
    if (messages.length >= READ_BATCH) return
    for (const entry of entriesOf(reply, keys.texts)) feed.deliver(entry)
  }

  async function readAll() {
    reader = await redis.duplicate(feed.forgetPosition)
    while (!closed) {
      try {
        await feed.locateOnce()
        await readOnce(reader)
      } catch (err) {
        if (closed) return
        log.debug({ err }, 'waiting for Redis to read on')
        await pause(READ_PAUSE)
      }
    }
  }

  return {
    shared: true,
    node,
    publish: outbox.publish,
    subscribe: feed.subscribe,
    get position() {
      return feed.position
    },
    isAfter,
    since: feed.since,
    async send(other, text) {
      const args = [text, MAX_MESSAGES, String(INBOX_LIFETIME), presence.isUncertain() ? '1' : '']
      return (await redis.evaluate(SEND, [keys.node(other), keys.inbox(other)], args)) === 1
    },
    receive(listener) {
      receiver = listener
    },
    isAlive: presence.isAlive,
    leave: presence.leave,
    async start() {
      await presence.start()
      redis.onChange(healthy => {
        if (!healthy) return feed.forgetPosition()
        outbox.checkLoss()
        void feed.locateOnce().catch(err => log.debug({ err }, 'the change bus was not found'))
      })
      if (redis.healthy) await feed.locateOnce()
      void readAll().catch(err => log.error({ code: 'MH2312', err }, 'stopped reading changes from Redis'))
    },
    async close() {
      await outbox.close()
      closed = true
      reader?.close()
      await presence.leave()
    },
  }
}

const BUSES = new WeakMap<RedisConnection, Map<string, RedisBus>>()

/** Returns the bus of this connection, for all plugins with one name for this node. Must be called in `setup`. */
export function busFor(host: InternalHost, redis: RedisConnection): RedisBus {
  const { node } = host.config
  const buses = BUSES.get(redis) ?? new Map<string, RedisBus>()
  BUSES.set(redis, buses)
  const known = buses.get(node)
  if (known) return known
  const bus = redisBus(redis, host)
  buses.set(node, bus)
  if (host.config.purpose !== 'inspect') host.onStart(() => bus.start())
  host.onClose(() => bus.close())
  return bus
}
