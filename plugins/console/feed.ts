// The live feed: one server-sent event stream per viewer, with records of all nodes in batches of one second.
import type { ServerResponse } from 'node:http'
import type { InternalHost } from '../../core/internal.ts'
import { type EventStream, openEventStream } from '../../core/transport.ts'
import type { CallRow, ConsoleEvent } from './api.ts'
import { figuresOf, secondOf } from './figures.ts'
import type { OperatorSession } from './login.ts'
import type { NodeLive, Nodes, NodeTick } from './nodes.ts'
import { type CallCollector, limitRows, type Records } from './records.ts'

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

  function sendTo(chosen: Iterable<EventStream>, { event, ...data }: ConsoleEvent) {
    // Viewers share one text.
    const text = JSON.stringify(data)
    for (const viewer of chosen) viewer.event({ event, data: text })
  }

  const viewersOf = (name: string) =>
    [...viewers].flatMap(([viewer, only]) => (only === undefined || only === name ? viewer : []))

  function sendCalls(name: string, calls: readonly CallRow[], left: number) {
    if (calls.length > 0 || left > 0) sendTo(viewersOf(name), { event: 'calls', node: name, calls, skipped: left })
  }

  /** `name`: the selected node, or this node for the sum of all nodes. */
  function sendTick(chosen: readonly EventStream[], name: string, summed: readonly NodeTick[]) {
    if (summed.length === 0 || chosen.length === 0) return
    const at = host.clock.now()
    const total = (of: (tick: NodeTick) => number) => summed.reduce((sum, tick) => sum + of(tick), 0)
    sendTo(chosen, {
      event: 'tick',
      node: name,
      ...(nodes.scope !== 'process' && { nodeStates: nodes.states() }),
      at,
      second: secondOf(
        Math.floor(at / 1_000) - 1,
        summed.map(({ second }) => second),
      ),
      now: figuresOf(summed.map(({ now }) => now)),
      inFlight: total(({ inFlight }) => inFlight),
      sessions: total(({ sessions }) => sessions),
      ready: summed.every(({ ready }) => ready),
    })
  }

  async function tick() {
    const { calls, skipped } = collector?.take() ?? { calls: [], skipped: 0 }
    const sent = limitRows(calls, MAX_BATCH)
    sendCalls(node, sent, skipped + calls.length - sent.length)
    const own = await readTick()
    if (viewers.size === 0) return
    const now = host.clock.now()
    for (const [name, { at }] of ticks) if (now - at > TICK_TTL) ticks.delete(name)
    const all = new Map([[node, own], ...[...ticks].map(([name, { tick: one }]) => [name, one] as const)])
    for (const only of new Set(viewers.values())) {
      const chosen = [...viewers].flatMap(([viewer, one]) => (one === only ? viewer : []))
      const summed = only === undefined ? [...all.values()] : [all.get(only)].filter(one => one !== undefined)
      sendTick(chosen, only ?? node, summed)
    }
  }

  function receiveLive({ name, calls, skipped: left, tick: one }: NodeLive) {
    ticks.set(name, { at: host.clock.now(), tick: one })
    sendCalls(name, calls, left)
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
    open(res: ServerResponse, session: OperatorSession, only?: string): boolean {
      if (viewers.size >= MAX_VIEWERS) return false
      const viewer = openEventStream(res, { log: host.log })
      viewers.set(viewer, only)
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
    send: (event: ConsoleEvent) => sendTo(viewers.keys(), event),
    end() {
      for (const viewer of [...viewers.keys()]) end(viewer, 'The host is shutting down.')
    },
  }
}
