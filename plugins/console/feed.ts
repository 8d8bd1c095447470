// The live feed: one server-sent event stream per viewer, with records of all nodes in batches of one second.
import type { ServerResponse } from 'node:http'
import type { InternalHost } from '../../core/internal.ts'
import { type EventStream, openEventStream } from '../../core/transport.ts'
import type { CallRow, ConsoleEvent } from './api.ts'
import type { OperatorSession } from './login.ts'
import type { NodeLive, Nodes, NodeTick } from './nodes.ts'
import { type CallCollector, limitRows, type Records } from './records.ts'
import { toSecond, toStats } from './stats.ts'

const MAX_VIEWERS = 8
/** Maximum records of one batch. */
const MAX_BATCH = 200
/** Milliseconds. */
const INTERVAL = 1_000
/** Milliseconds for which the figures of another node count. */
const TICK_TTL = 5_000

interface FeedParts {
  readonly host: Pick<InternalHost, 'clock' | 'log' | 'config'>
  readonly records: Records
  readonly nodes: Pick<Nodes, 'scope' | 'states' | 'watch'>
  readTick(): Promise<NodeTick>
}

/** Without viewers, the feed collects nothing and runs no timer. */
export function createFeed({ host, records, nodes, readTick }: FeedParts) {
  const { node } = host.config
  /** Each viewer, with the node that it selected. */
  const viewers = new Map<EventStream, string | undefined>()
  const ticks = new Map<string, { readonly at: number; readonly tick: NodeTick }>()
  let collector: CallCollector | undefined
  let stop: (() => void) | undefined

  function sendEvent(targets: Iterable<EventStream>, { event, ...data }: ConsoleEvent) {
    // Viewers share one text.
    const text = JSON.stringify(data)
    for (const viewer of targets) viewer.event({ event, data: text })
  }

  const findViewers = (name: string) =>
    [...viewers].flatMap(([viewer, filter]) => (filter === undefined || filter === name ? viewer : []))

  function sendCalls(name: string, calls: readonly CallRow[], skipped: number) {
    if (calls.length > 0 || skipped > 0) sendEvent(findViewers(name), { event: 'calls', node: name, calls, skipped })
  }

  /** `name`: the selected node, or this node for the sum of all nodes. */
  function sendTick(targets: readonly EventStream[], name: string, summed: readonly NodeTick[]) {
    if (summed.length === 0 || targets.length === 0) return
    const at = host.clock.now()
    const total = (of: (tick: NodeTick) => number) => summed.reduce((sum, tick) => sum + of(tick), 0)
    sendEvent(targets, {
      event: 'tick',
      node: name,
      ...(nodes.scope !== 'process' && { nodeStates: nodes.states() }),
      at,
      second: toSecond(
        Math.floor(at / 1_000) - 1,
        summed.map(({ second }) => second),
      ),
      now: toStats(summed.map(({ now }) => now)),
      inFlight: total(({ inFlight }) => inFlight),
      sessions: total(({ sessions }) => sessions),
      ready: summed.every(({ ready }) => ready),
    })
  }

  async function tick() {
    const { calls, skipped } = collector?.take() ?? { calls: [], skipped: 0 }
    const sent = limitRows(calls, MAX_BATCH)
    sendCalls(node, sent, skipped + calls.length - sent.length)
    const ownTick = await readTick()
    if (viewers.size === 0) return
    const now = host.clock.now()
    for (const [name, { at }] of ticks) if (now - at > TICK_TTL) ticks.delete(name)
    const all = new Map([[node, ownTick], ...[...ticks].map(([name, { tick: one }]) => [name, one] as const)])
    for (const filter of new Set(viewers.values())) {
      const targets = [...viewers].flatMap(([viewer, one]) => (one === filter ? viewer : []))
      const summed = filter === undefined ? [...all.values()] : [all.get(filter)].filter(one => one !== undefined)
      sendTick(targets, filter ?? node, summed)
    }
  }

  function receiveLive({ name, calls, skipped, tick: one }: NodeLive) {
    ticks.set(name, { at: host.clock.now(), tick: one })
    sendCalls(name, calls, skipped)
  }

  function start() {
    collector = records.collect()
    const unwatch = nodes.watch(receiveLive)
    const failed = (err: unknown) => host.log.error({ code: 'MH3606', err }, 'The live feed of the console failed')
    const timer = host.clock.setInterval(() => void tick().catch(failed), INTERVAL).unref()
    return () => {
      collector?.stop()
      collector = undefined
      unwatch()
      host.clock.clear(timer)
      ticks.clear()
    }
  }

  function end(viewer: EventStream, reason: string) {
    viewer.event({ event: 'end', data: JSON.stringify({ node, reason }) })
    viewer.end()
  }

  return {
    /** `only`: the node that the viewer selected. False if there are too many viewers. */
    open(res: ServerResponse, session: OperatorSession, filter?: string): boolean {
      if (viewers.size >= MAX_VIEWERS) return false
      const viewer = openEventStream(res, { log: host.log })
      viewers.set(viewer, filter)
      stop ??= start()
      const forget = session.onEnd(() => end(viewer, 'The console session ended.'))
      const left = session.expiresAt - host.clock.now()
      const expiry = host.clock.setTimeout(() => end(viewer, 'The console session expired.'), left).unref()
      viewer.whenClosed(() => {
        host.clock.clear(expiry)
        forget()
        viewers.delete(viewer)
        if (viewers.size > 0) return
        stop?.()
        stop = undefined
      })
      return true
    },
    send: (event: ConsoleEvent) => sendEvent(viewers.keys(), event),
    end() {
      for (const viewer of [...viewers.keys()]) end(viewer, 'The host is shutting down.')
    },
  }
}
