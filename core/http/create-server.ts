// The HTTP server of a host: Node's, with its time limits, one request of a connection at a time, and an end for readers
// who do not read. Between the pipeline and the port (core/kernel/listen.ts).
import { createServer, type RequestListener, type Server } from 'node:http'
import type { ResolvedHttp } from '../config/define-config.ts'
import type { Logger } from '../kernel/log.ts'
import { serveInTurn } from './in-turn.ts'
import { endSlowReaders } from './slow-readers.ts'

/** Refuses what a client expects and nobody promises (RFC 9110 section 10.1.1); else Node would, past those who take turns. */
const refuseExpectations =
  (serve: RequestListener): RequestListener =>
  (req, res) => {
    const { expect } = req.headers
    if (expect === undefined || expect.toLowerCase() === '100-continue') return serve(req, res)
    res.writeHead(417, { Connection: 'close' }).end()
  }

/** A server that answers with `serve`; it does not listen yet. */
export function createHttpServer(
  serve: RequestListener,
  { requestTimeout, keepAliveTimeout, writeTimeout }: ResolvedHttp,
  log: Logger,
): Server {
  const inTurn = serveInTurn(refuseExpectations(serve), ({ remoteAddress }) =>
    log.debug({ ip: remoteAddress }, 'closed a connection that sent too many requests ahead'),
  )
  const server = createServer(
    {
      requestTimeout,
      headersTimeout: requestTimeout,
      keepAliveTimeout,
      // A second Host, Content-Type or Authorization makes the header malformed; else the first would pass for all.
      joinDuplicateHeaders: true,
      // How often Node looks for requests past their time.
      connectionsCheckingInterval: Math.min(30_000, Math.max(100, requestTimeout / 4)),
    },
    inTurn,
  )
  server.on('checkExpectation', inTurn)
  endSlowReaders(server, { timeout: writeTimeout }, readers =>
    log.warn(readers, 'closed connections whose readers do not read'),
  )
  return server
}
