// Leaves a port to other processes without a caller noticing: nothing new is accepted, what comes on open connections is
// answered, and each of them is closed by its answer or when it has idled.
import type { Server } from 'node:http'
import { Server as NetServer } from 'node:net'

/** Milliseconds: connections that clients keep idle for longer are closed all the same. */
const LONGEST = 10_000
/** Node closes an idle connection at its keep-alive time, or a little later. */
const MARGIN = 1_500

/** Resolves when no connection is open, at the latest when all that were idle have had their keep-alive time. */
export async function handOver(server: Server, keepAliveTimeout: number): Promise<void> {
  server.prependListener('request', (_request, response) => void response.setHeader('Connection', 'close'))
  const closed = new Promise<void>(resolve => {
    // An HTTP server's own `close` cuts idle connections, on which a request may be under way.
    NetServer.prototype.close.call(server, () => resolve())
  })
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, Math.min(LONGEST, keepAliveTimeout + MARGIN))
  })
  await Promise.race([closed, late])
  clearTimeout(timer)
}
