// Connects the consoles of several nodes: requests, actions, and live records for viewers.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { InternalHost, Slots } from '../../core/internal.ts'
import { isObject } from '../../core/plugin.ts'
import type { CallRow, NodeState } from './api.ts'
import { limitRows, type Records } from './records.ts'
import type { PackedNow, PackedSecond } from './stats.ts'

type Peers = Slots['peers']

const PLUGIN = 'console'
/** Nodes with another version of these messages are ignored. */
const VERSION = 1
/** Further nodes are left out. */
const MAX_NODES = 64
const MAX_NAME = 64
/** Characters of a reply. */
const MAX_REPLY = 262_144
// Durations in milliseconds.
/** A node that does not reply in this time is silent: until it replies, requests do not wait for it. */
const REPLY_TIMEOUT = 1_000
const ACTION_TIMEOUT = 10_000
/** A silent node stays in the list for this time. */
const SILENT_TTL = 60_000
/** The first request waits this time for the introductions of other nodes. */
const FIRST_WAIT = 250
/** A node sends live records for this time after a `watch` message. */
const WATCH_TTL = 15_000
const WATCH_INTERVAL = 5_000
const INTRODUCTION_INTERVAL = 30_000
const SEND_INTERVAL = 1_000
/** Interval between checks for lost nodes. */
const CHECK_INTERVAL = 15_000
const MAX_WATCHERS = 8
/** Records per second that a node receives from all other nodes, and at least from each. */
const MAX_BATCH = 400
const MIN_BATCH = 20

export interface NodeTick {
  readonly second: PackedSecond
  readonly now: PackedNow
  readonly inFlight: number
  readonly sessions: number
  readonly ready: boolean
}

export interface NodeLive {
  readonly name: string
  readonly calls: readonly CallRow[]
  readonly skipped: number
  readonly tick: NodeTick
}

export interface NodeReply {
  readonly name: string
  readonly value: object
}

type Params = Readonly<Record<string, unknown>>

interface KnownNode {
  readonly address: string
  readonly name: string
  readonly machine: string
  seenAt: number
  isSilent: boolean
  /** True if the last reply was shortened. */
  isShortened: boolean
  /** True if the last reply was a refusal. */
  isFailed: boolean
}

type Body = Params & { readonly v: typeof VERSION; readonly type: string; readonly node: string }

const isBody = (body: unknown): body is Body =>
  isObject(body) &&
  body['v'] === VERSION &&
  typeof body['type'] === 'string' &&
  typeof body['node'] === 'string' &&
  body['node'].length <= MAX_NAME

const readName = (value: unknown) => (typeof value === 'string' ? value.slice(0, MAX_NAME) : '')

/** Shortens the longest lists of a reply until it fits. */
function shorten(value: object): { readonly value: object; readonly isShortened: boolean } {
  let shortened: Record<string, unknown> = { ...value }
  let isShortened = false
  while (JSON.stringify(shortened).length > MAX_REPLY) {
    const sizes = Object.entries(shortened).map(([key, part]) => [key, JSON.stringify(part)?.length ?? 0] as const)
    const [key] = sizes.sort(([, one], [, other]) => other - one)[0] ?? ['']
    const part = shortened[key]
    const list = isObject(part) ? part['seconds'] : part
    if (!Array.isArray(list) || list.length === 0) throw new Error(`the reply is larger than ${MAX_REPLY} characters`)
    const half = Math.ceil(list.length / 2)
    // The history is the only part that is no list. Its newest seconds come last.
    const kept = isObject(part) ? { ...part, seconds: list.slice(half) } : list.slice(0, -half)
    shortened = { ...shortened, [key]: kept }
    isShortened = true
  }
  return { value: shortened, isShortened }
}

interface NodesParts {
  readonly host: Pick<InternalHost, 'clock' | 'log'>
  /** Undefined for a host without routes. */
  readonly peers: Peers | undefined
  /** The name of this node on the page. */
  readonly name: string
  /** Returns the data of this node. Rejects with an error for the operator. */
  readonly answer: (what: string, params: Params) => Promise<object>
  /** Creates an error from the refusal of another node. */
  readonly failureOf: (refusal: Params) => Error
  readonly collect: Records['collect']
  readonly readTick: () => Promise<NodeTick>
}

/** Returns the peers of the route that reaches the most nodes. */
export function findPeers({ routes, services }: InternalHost): Peers | undefined {
  const all = routes.map(route => services.slot('peers', route))
  return all.find(({ shared }) => shared === true) ?? all.find(({ shared }) => shared === 'host') ?? all[0]
}

export function createNodes({ host: { clock, log }, peers, name, answer, failureOf, collect, readTick }: NodesParts) {
  const { node: address = name, shared = false } = peers ?? {}
  const known = new Map<string, KnownNode>()
  const pending = new Map<string, { readonly from: string; readonly settle: (body: Body) => void }>()
  const watchers = new Map<string, { until: number; most: number; isSending: boolean; skipped: number }>()
  const listeners = new Set<(live: NodeLive) => void>()
  const introduction = { name, machine: hostname() }
  /** Addresses of lost nodes by name. */
  const lost = new Map<string, string>()
  let introducedAt = -Infinity
  let stopWatching: (() => void) | undefined
  let stopSending: (() => void) | undefined
  let stopChecking: (() => void) | undefined
  let ending: Promise<void> | undefined

  const failed = (err: unknown) => log.debug({ err }, 'a message of the console was not sent to other nodes')
  const messageOf = (body: object) =>
    ({ type: 'plugin', plugin: PLUGIN, session: PLUGIN, body: { v: VERSION, node: address, ...body } }) as const
  /** False if the node is gone or cannot be reached. */
  async function send(to: string, body: object): Promise<boolean> {
    try {
      return (await peers?.send(to, messageOf(body))) === true
    } catch (err) {
      failed(err)
      return false
    }
  }

  async function publish(body: object) {
    try {
      await peers?.publish(messageOf(body))
    } catch (err) {
      failed(err)
    }
  }

  function introduce(): Promise<void> | undefined {
    if (shared === false || clock.now() - introducedAt < INTRODUCTION_INTERVAL) return undefined
    introducedAt = clock.now()
    return publish({ type: 'here', ...introduction })
  }

  function noteFound(node: string): void {
    if (lost.delete(node)) log.info({ code: 'MH3614', node }, 'A lost node is reachable again')
  }

  /** A node that stops sends `gone` first, so it is not lost. */
  async function checkNodes(): Promise<void> {
    for (const node of [...known.values()]) {
      if (lost.has(node.name) || lost.size >= MAX_NODES || (await peers?.isAlive(node.address)) !== false) continue
      if (known.get(node.address) !== node) continue
      node.isSilent = true
      lost.set(node.name, node.address)
      const fix = 'check its process and its connection to the other nodes'
      log.warn(
        { code: 'MH3613', node: node.name, machine: node.machine, fix },
        'Lost a node: it ended or is unreachable',
      )
    }
    for (const [node, at] of [...lost]) if ((await peers?.isAlive(at)) === true) noteFound(node)
  }

  function noteSeen(node: KnownNode): void {
    node.seenAt = clock.now()
    node.isSilent = false
    noteFound(node.name)
  }

  function noteNode(body: Body): void {
    const found = known.get(body.node)
    // Without viewers, nodes that ended without a message stay.
    if (!found && known.size >= MAX_NODES) forgetOld(() => true)
    if (found) noteSeen(found)
    else if (known.size < MAX_NODES) {
      const node = { address: body.node, name: readName(body['name']), machine: readName(body['machine']) }
      known.set(body.node, { ...node, seenAt: clock.now(), isSilent: false, isShortened: false, isFailed: false })
      // After a restart, a node has another address.
      known.delete(lost.get(node.name) ?? '')
      noteFound(node.name)
      if (stopWatching) void send(body.node, { type: 'watch', most: batchOf() })
    }
  }

  function forgetOld(isGone = ({ isSilent }: KnownNode) => isSilent): void {
    for (const node of known.values())
      if (isGone(node) && clock.now() - node.seenAt > SILENT_TTL) known.delete(node.address)
  }

  const batchOf = () => Math.max(MIN_BATCH, Math.floor(MAX_BATCH / Math.max(1, known.size)))

  async function reply({ node: to, id, what, params }: Body): Promise<void> {
    const respond = async () => {
      try {
        return shorten(await answer(readName(what), isObject(params) ? params : {}))
      } catch (error) {
        const refusal = isObject(error) && 'refusal' in error ? error.refusal : undefined
        if (!refusal) log.error({ code: 'MH3606', err: error }, 'A request of another console failed')
        return { refusal: refusal ?? { status: 500, error: 'internal', message: 'The request failed. See the log.' } }
      }
    }
    await send(to, { type: 'reply', id, ...introduction, ...(await respond()) })
  }

  function receiveLive({ node: from, ...live }: Body): void {
    const found = known.get(from)
    if (found) noteSeen(found)
    if (!found || !Array.isArray(live['calls']) || !isObject(live['tick'])) return
    for (const listener of listeners) listener({ ...(live as unknown as NodeLive), name: found.name })
  }

  function renewWatcher({ node: from, most }: Body): void {
    const watcher = watchers.get(from) ?? { until: 0, most: 0, isSending: false, skipped: 0 }
    if (!watchers.has(from) && watchers.size >= MAX_WATCHERS) return
    watcher.until = clock.now() + WATCH_TTL
    watcher.most = typeof most === 'number' ? Math.min(MAX_BATCH, Math.max(0, most)) : MIN_BATCH
    watchers.set(from, watcher)
    stopSending ??= startSending()
  }

  function startSending(): () => void {
    const collector = collect()

    async function sendTo(to: string, calls: readonly CallRow[], left: number, tick: NodeTick) {
      const watcher = watchers.get(to)
      if (!watcher) return
      // The bus has not accepted the last batch yet.
      if (watcher.isSending) {
        watcher.skipped += calls.length + left
        return
      }
      watcher.isSending = true
      const sent = limitRows(calls, watcher.most)
      const missed = watcher.skipped + left + calls.length - sent.length
      watcher.skipped = 0
      const isThere = await send(to, { type: 'live', calls: sent, skipped: missed, tick })
      watcher.isSending = false
      if (!isThere) watcher.skipped += sent.length + missed
    }

    async function sendAll() {
      for (const [to, { until }] of watchers) if (until < clock.now()) watchers.delete(to)
      if (watchers.size === 0) {
        stopSending?.()
        stopSending = undefined
        return
      }
      const { calls, skipped } = collector.take()
      const tick = await readTick()
      await Promise.all([...watchers.keys()].map(to => sendTo(to, calls, skipped, tick)))
    }

    const timer = clock.setInterval(() => void sendAll().catch(failed), SEND_INTERVAL).unref()
    return () => {
      clock.clear(timer)
      collector.stop()
    }
  }

  function receive(body: Body): void {
    if (ending || body.node === address) return
    if (body.type === 'gone') {
      known.delete(body.node)
      watchers.delete(body.node)
      for (const { settle } of pending.values()) settle(body)
      return
    }
    if (body.type === 'here' || body.type === 'reply') noteNode(body)
    if (body.type === 'here' && body['replied'] !== true) {
      void send(body.node, { type: 'here', replied: true, ...introduction })
    } else if (body.type === 'ask') void reply(body)
    else if (body.type === 'reply') pending.get(readName(body['id']))?.settle(body)
    else if (body.type === 'watch') renewWatcher(body)
    else if (body.type === 'unwatch') watchers.delete(body.node)
    else if (body.type === 'live') receiveLive(body)
  }

  /** Undefined: no reply in time. */
  function requestNode(node: KnownNode, what: string, params: Params, limit: number): Promise<Body | undefined> {
    const id = randomUUID()
    return new Promise<Body | undefined>(resolve => {
      const settle = (body?: Body) => {
        if (body && body.node !== node.address) return
        clock.clear(timer)
        pending.delete(id)
        if (!body) node.isSilent = true
        resolve(body?.type === 'reply' ? body : undefined)
      }
      const timer = clock.setTimeout(() => settle(), limit)
      pending.set(id, { from: node.address, settle })
      void send(node.address, { type: 'ask', id, what, params }).then(isThere => isThere || settle())
    })
  }

  async function whenIntroduced() {
    const isFirst = introducedAt === -Infinity || known.size === 0
    const introduced = introduce()
    if (!isFirst || !introduced) return
    await introduced
    await new Promise<void>(resolve => clock.setTimeout(resolve, FIRST_WAIT))
  }

  const stateOf = ({ isSilent, isFailed, isShortened }: KnownNode): NodeState['state'] =>
    isSilent ? 'silent' : isFailed ? 'failed' : isShortened ? 'shortened' : 'ok'

  const states = (): NodeState[] => {
    forgetOld()
    const rows = [...known.values()].map(node => ({ name: node.name, machine: node.machine, state: stateOf(node) }))
    return [{ ...introduction, state: 'ok' as const }, ...rows.sort((one, other) => (one.name < other.name ? -1 : 1))]
  }

  return {
    /** `machine` and `cluster`: other nodes can exist. */
    scope: shared === false ? ('process' as const) : shared === 'host' ? ('machine' as const) : ('cluster' as const),
    start(): void {
      if (shared === false) return
      peers?.receive(message => {
        if (message.type === 'plugin' && message.plugin === PLUGIN && isBody(message.body)) receive(message.body)
      })
      void introduce()
      const timer = clock.setInterval(() => void checkNodes().catch(failed), CHECK_INTERVAL).unref()
      stopChecking = () => clock.clear(timer)
    },
    states,
    /** True for this node and known nodes. */
    has: (node: string) => node === name || [...known.values()].some(one => one.name === node),
    /**
     * Returns the data of all nodes that reply in time, this node first. `only`: the name of one node. Rejects if this node or the
     * selected node cannot read its data.
     */
    async request(what: string, params: Params = {}, only?: string): Promise<readonly NodeReply[]> {
      await whenIntroduced()
      const targets = [...known.values()].filter(node => only === undefined || node.name === only)
      const isAsked = only === undefined || only === name
      const own = async () => (isAsked ? [{ name, value: await answer(what, params) }] : [])
      const replies = await Promise.all([
        own(),
        ...targets.map(async node => {
          const { isSilent } = node
          const replied = requestNode(node, what, params, REPLY_TIMEOUT)
          const body = isSilent ? undefined : await replied
          if (!body) return []
          const { value, refusal } = body
          node.isShortened = body['isShortened'] === true
          node.isFailed = isObject(refusal)
          if (isObject(refusal) && only !== undefined) throw failureOf(refusal)
          return isObject(value) ? [{ name: node.name, value }] : []
        }),
      ])
      return replies.flat()
    },
    /** Runs an action on another node. Undefined: no reply in time. */
    async act(node: string, what: string, params: Params): Promise<Params | undefined> {
      const found = [...known.values()].find(one => one.name === node)
      return found && requestNode(found, what, params, ACTION_TIMEOUT)
    },
    /** Reports calls and figures of other nodes until the returned function is called. */
    watch(listener: (live: NodeLive) => void): () => void {
      if (shared === false) return () => undefined
      listeners.add(listener)
      const subscribe = () => {
        void introduce()
        for (const node of known.values()) {
          // A watched node sends figures every second.
          if (stopWatching && clock.now() - node.seenAt > WATCH_INTERVAL) node.isSilent = true
          void send(node.address, { type: 'watch', most: batchOf() })
        }
      }
      if (!stopWatching) {
        subscribe()
        const timer = clock.setInterval(subscribe, WATCH_INTERVAL).unref()
        stopWatching = () => {
          clock.clear(timer)
          for (const node of known.keys()) void send(node, { type: 'unwatch' })
        }
      }
      return () => {
        listeners.delete(listener)
        if (listeners.size > 0) return
        stopWatching?.()
        stopWatching = undefined
      }
    },
    end(): Promise<void> {
      if (ending || shared === false) return ending ?? Promise.resolve()
      stopSending?.()
      stopChecking?.()
      ending = publish({ type: 'gone' })
      for (const { from, settle } of [...pending.values()]) settle({ v: VERSION, type: 'gone', node: from })
      return ending
    },
  }
}

export type Nodes = ReturnType<typeof createNodes>
