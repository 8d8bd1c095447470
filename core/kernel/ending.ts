// A host's end: it leaves its port to others, lets what runs end, tells the rest that it is cancelled, and closes what
// plugins opened. For host.ts.
import type { Server } from 'node:http'
import type { Host } from '../host.ts'
import { createPort, within } from '../http/hand-over.ts'
import { RETRY } from '../http/sse.ts'
import type { SessionRegistry } from '../sessions/registry.ts'
import type { InFlight } from './in-flight.ts'
import type { PluginNotes } from './plugin-host.ts'

/** How long the last that clients are told may take to reach them, milliseconds: streams of other nodes are looked at each second. */
const FLUSH_TIME = 1_500

export interface EndingParts {
  readonly server: Server
  /** Milliseconds. */
  readonly keepAliveTimeout: number
  readonly inFlight: InFlight
  readonly registry: SessionRegistry
  readonly notes: PluginNotes
  /** Whether sessions live in this process alone, so that nobody else can serve them. */
  readonly isAlone: () => boolean
}

export function createEnding(parts: EndingParts): Pick<Host, 'handOver' | 'close'> {
  const { server, keepAliveTimeout, inFlight, registry, notes, isAlone } = parts
  const port = createPort(server, keepAliveTimeout)

  /** Lets what runs, and what still comes, end within `grace` milliseconds; cancels the rest. */
  async function drain(grace: number, handOver: boolean) {
    const end = performance.now() + grace
    const left = () => Math.max(0, end - performance.now())
    const draining = inFlight.drain()
    registry.release(RETRY)
    for (const task of notes.draining) task()
    // What calls of these sessions ask is answered on new connections, and nowhere else.
    if (isAlone()) await within(left(), draining.begun)
    const stopSweeping = handOver ? undefined : port.sweep()
    await within(left(), handOver ? port.handOver() : port.leave())
    await within(left(), draining.empty())
    stopSweeping?.()
    return draining.end()
  }

  return {
    handOver: port.handOver,
    async close({ grace = 10_000, handOver = !isAlone() } = {}) {
      const report = await drain(grace, handOver)
      await registry.close(new Error('the server is shutting down'), grace)
      const stopSweeping = port.sweep()
      await port.whenEmpty(Math.min(grace, FLUSH_TIME))
      stopSweeping()
      const closed = new Promise(resolve => server.close(resolve))
      server.closeAllConnections()
      await closed
      for (const task of notes.closing.splice(0).reverse()) await task()
      return report
    },
  }
}
