// What a host's connections and requests are measured by. For host.ts.
import type { SlowReaders } from './http/slow-readers.ts'
import { openStreams } from './http/sse.ts'
import type { Figures } from './kernel/figures.ts'
import type { InFlight } from './kernel/in-flight.ts'
import type { Logger } from './kernel/log.ts'

/** Says in the log which connections the host closes, and counts them. */
export function createConnectionNews(log: Logger, figures: Figures) {
  const closed = figures.counter({
    name: 'mcp_host_connections_closed_total',
    help: 'Connections that the host closed: of readers who do not read, or who pipeline requests.',
    labels: ['reason'],
  })
  return {
    pipelined(ip: string | undefined) {
      log.debug({ ip }, 'closed a connection that pipelined requests')
      closed(1, { reason: 'pipelined' })
    },
    slowReaders(readers: SlowReaders) {
      log.warn(readers, 'closed connections whose readers do not read')
      closed(readers.connections, { reason: 'slow_reader' })
    },
  }
}

export function offerHttpFigures(figures: Figures, inFlight: Pick<InFlight, 'count'>, waiting: () => number): void {
  figures.gauge({ name: 'mcp_host_requests_in_flight', help: 'Requests that are being answered.' }, inFlight.count)
  figures.gauge({ name: 'mcp_host_streams', help: 'Event streams that are open.' }, openStreams)
  figures.gauge({ name: 'mcp_host_waiting_bytes', help: 'Bytes that wait for readers of responses.' }, waiting)
}
