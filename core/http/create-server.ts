// The HTTP server of a host: Node's, with its time limits, one request of a connection at a time, and an end for readers
// who do not read. Between the pipeline and the port (core/http/listen.ts).
import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Clock } from './clock.ts'
import { leaveUnread } from './leave-unread.ts'
import { onConnection } from './on-connection.ts'
import { refusePipelined } from './refuse-pipelined.ts'
import { HostResponse } from './response.ts'
import { endSlowReaders, type SlowReaders } from './slow-readers.ts'

/** Refuses unsupported expectations (RFC 9110 section 10.1.1) and closes the connection. */
const refuseExpectations =
  (serve: RequestListener): RequestListener =>
  (req, res) => {
    const { expect } = req.headers
    if (expect === undefined || expect.toLowerCase() === '100-continue') {
      leaveUnread(req, res)
      return serve(req, res)
    }
    res.writeHead(417, { Connection: 'close' }).end()
  }

/** How long a server waits for others, milliseconds. */
export interface TimeLimits {
  /** How long receiving one request may take. */
  readonly requestTimeout: number
  /** How long an idle connection is kept. */
  readonly keepAliveTimeout: number
  /** How long a reader may leave what waits for it. */
  readonly writeTimeout: number
}

/** What an operator is told of connections that the server closes. */
export interface ServerNews {
  /** A client sent a request before the previous response had ended. */
  pipelined(address: string | undefined): void
  /** Readers took too little of what was sent to them. */
  slowReaders(readers: SlowReaders): void
}

/** A server, and what waits for its readers. */
export interface WatchedServer {
  readonly server: Server
  /** Bytes that wait for readers now. */
  waiting(): number
}

type HttpServerOptions = ServerOptions & { readonly ServerResponse: typeof HostResponse }
/** Makes a server, as node:http's `createServer` does. */
export type HttpServerFactory<Made = Server> = (options: HttpServerOptions, serve: RequestListener) => Made

/** A server that answers with `serve`; it does not listen yet. `make`: Node's own, or one that speaks TLS. */
export function createHttpServer(
  serve: RequestListener,
  { requestTimeout, keepAliveTimeout, writeTimeout }: TimeLimits,
  news: ServerNews,
  make: HttpServerFactory = createServer,
  clock?: Clock,
): WatchedServer {
  const listener = refusePipelined(refuseExpectations(serve), ({ remoteAddress }) => news.pipelined(remoteAddress))
  const server = make(
    {
      ServerResponse: HostResponse,
      requestTimeout,
      headersTimeout: requestTimeout,
      keepAliveTimeout,
      // A second Host, Content-Type or Authorization makes the header malformed; else the first would pass for all.
      joinDuplicateHeaders: true,
      // How often Node looks for requests past their time.
      connectionsCheckingInterval: Math.min(30_000, Math.max(100, requestTimeout / 4)),
    },
    listener,
  )
  server.on('checkExpectation', listener)
  // Asked now, it is known for as long as the socket is: of one that its client has reset nobody could tell whose it was.
  onConnection(server, socket => {
    if (socket.remoteAddress === undefined) socket.destroy()
  })
  const waiting = endSlowReaders(server, { timeout: writeTimeout, clock }, readers => news.slowReaders(readers))
  return { server, waiting }
}
