// The live feed: one server-sent event stream per viewer, with records in batches of one second.
import type { ServerResponse } from 'node:http'
import type { InternalHost } from '../../core/internal.ts'
import { type EventStream, openEventStream } from '../../core/transport.ts'
import type { CallRow, ConsoleEvent } from './api.ts'
import type { OperatorSession } from './login.ts'
import type { Records } from './records.ts'

export const MAX_VIEWERS = 8
/** Records of one batch. */
const MAX_BATCH = 200
/** Milliseconds. */
const INTERVAL = 1_000

interface FeedParts {
  readonly host: Pick<InternalHost, 'clock' | 'log' | 'config'>
  readonly records: Records
  readTick(): Promise<Omit<Extract<ConsoleEvent, { event: 'tick' }>, 'event' | 'node' | 'at' | 'second' | 'now'>>
}

/** Nothing is collected and no timer runs without a viewer. */
export function createFeed({ host, records, readTick }: FeedParts) {
  const { node } = host.config
  const viewers = new Set<EventStream>()
  let batch: CallRow[] = []
  let skipped = 0
  let stop: (() => void) | undefined

  function send({ event, ...data }: ConsoleEvent) {
    // Viewers share one text.
    const text = JSON.stringify(data)
    for (const viewer of viewers) viewer.event({ event, data: text })
  }

  async function tick() {
    if (batch.length > 0) send({ event: 'calls', node, calls: batch, skipped })
    batch = []
    skipped = 0
    const facts = await readTick()
    if (viewers.size === 0) return
    send({ event: 'tick', node, at: host.clock.now(), second: records.second(), now: records.now(), ...facts })
  }

  function start() {
    const unlisten = records.listen(row => {
      if (batch.length < MAX_BATCH) batch.push(row)
      else skipped++
    })
    const failed = (err: unknown) => host.log.error({ code: 'MH3606', err }, 'The live feed of the console failed')
    const timer = host.clock.setInterval(() => void tick().catch(failed), INTERVAL).unref()
    return () => {
      unlisten()
      host.clock.clear(timer)
      batch = []
      skipped = 0
    }
  }

  function end(viewer: EventStream, reason: string) {
    viewer.event({ event: 'end', data: JSON.stringify({ node, reason }) })
    viewer.end()
  }

  return {
    /** False if there are too many viewers. */
    open(res: ServerResponse, session: OperatorSession): boolean {
      if (viewers.size >= MAX_VIEWERS) return false
      const viewer = openEventStream(res, { log: host.log })
      viewers.add(viewer)
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
    send,
    end() {
      for (const viewer of [...viewers]) end(viewer, 'The host stops.')
    },
  }
}

export type Feed = ReturnType<typeof createFeed>
