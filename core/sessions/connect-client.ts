// Connects one client to a route by messages, for transports without HTTP: a session from `initialize` on.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError } from '../http/errors.ts'
import type { User } from '../kernel/user.ts'
import type { AuthorizeCaller } from '../mcp/calls/call.ts'
import type { McpRoute } from '../mcp/routes/routes.ts'
import {
  encodeError,
  type Message,
  readMessages,
  requireBatches,
  type ValidMessage,
  validBatch,
} from '../mcp/wire/message.ts'
import type { RequestId } from '../mcp/wire/protocol.ts'
import type { SessionRegistry } from './registry.ts'
import { createLineReply, type ReplyLine, receiveMessage, type ServeDependencies, serveRequests } from './serve.ts'
import type { Session } from './session.ts'

/** The caller of `host.connect`. The transport has authenticated it. */
export interface LineCaller {
  readonly route: McpRoute
  /** The values of the route's parameters. */
  readonly params?: Readonly<Record<string, string>>
  readonly user?: User | undefined
  readonly headers?: IncomingHttpHeaders
  /** The client's address, for limits and records. Default: the plugin's name. */
  readonly ip?: string
}

/** The client's side of a connection. The host ends the connection if one of its functions throws or rejects. */
export interface ClientLine extends ReplyLine {
  /** Called when the host ends the connection. */
  close(): void
}

/** A connection of `host.connect`. */
export interface ConnectedClient {
  /** Handles a JSON-RPC message, or a batch. Messages are taken in order; the promise does not wait for responses. */
  receive(message: string): Promise<void>
  /** Ends the session and cancels its calls. Call it when the client has disconnected. */
  close(): Promise<void>
}

/** The part of the plugin host for transports. */
export interface Connector {
  /**
   * Connects a client that initializes a session. `line.send` receives JSON-RPC messages for the client. Throws `unauthorized` or
   * `forbidden` if the caller cannot use the route. A plugin that calls it has `provides: ['transport']`.
   */
  connect(caller: LineCaller, line: ClientLine): ConnectedClient
}

interface Connecting extends ServeDependencies {
  readonly name: string
  readonly sessions: Pick<SessionRegistry, 'calls' | 'end' | 'open'>
  readonly authorize: AuthorizeCaller
  watchCaller(caller: Parameters<AuthorizeCaller>[0], end: () => void): () => void
}

interface Refused {
  readonly id?: RequestId | undefined
  readonly method?: string
}

/** A connection for transports that also serve requests without a session. */
export interface Connection extends ConnectedClient {
  /** Responds to a message that could not be handled, and records it. */
  refuse(thrown: unknown, request?: Refused, revision?: string): void
}

/** Passes errors of the line to `fail`. Calls `close` once. */
function guardLine(line: ClientLine, fail: (thrown: unknown) => void): Required<ClientLine> {
  let isClosed = false
  function attempt(call: () => unknown) {
    try {
      const called = call()
      if (called instanceof Promise) called.catch(fail)
    } catch (thrown) {
      fail(thrown)
    }
  }
  return {
    send: message => attempt(() => line.send(message)),
    respond: message => attempt(() => (line.respond ? line.respond(message) : line.send(message))),
    close() {
      if (isClosed) return
      isClosed = true
      attempt(() => line.close())
    },
  }
}

/** Connects a client. `take` can handle a message itself and return true. Throws `unauthorized` or `forbidden`. */
export function connectClient(
  host: Connecting,
  { route, params = {}, user, headers = {}, ip = host.name }: LineCaller,
  ends: ClientLine,
  take: (message: ValidMessage) => boolean = () => false,
): Connection {
  const caller = { route, params, user }
  host.authorize(caller)
  const sender = { headers, user }
  let session: Session | undefined
  let closed = false
  let failed = false
  let last = Promise.resolve()
  const line = guardLine(ends, fail)

  /** Ends the connection. */
  function fail(err: unknown) {
    if (failed) return
    failed = true
    host.log.warn({ code: 'MH1610', err, route: route.path }, 'a connection failed')
    void close()
    line.close()
  }

  function refuse(thrown: unknown, { id, method }: Refused = {}, revision: string | undefined = session?.revision) {
    const error = HostError.is(thrown) ? thrown : new HostError('internal')
    if (error !== thrown) host.log.error({ code: 'MH1610', err: thrown, route: route.path }, 'a message failed')
    const { client, transport = host.name, id: sessionId } = session ?? {}
    host.reportRefused({ ...sender, method, route, ip, client, revision, transport, sessionId, error })
    line.respond(encodeError(error, { id, revision }))
  }

  async function leave(opened: Session) {
    if (opened.disposed) return
    try {
      await host.sessions.end(opened, new Error('the client has disconnected'))
    } catch (err) {
      host.log.warn({ code: 'MH1413', err }, 'could not end a session on every node')
    }
  }

  async function open(): Promise<Session> {
    const signal = () => new AbortController().signal
    const opened = await host.sessions.open({ ...caller, headers, ip, signal }, host.name)
    // The session stays in use until the client disconnects, so it never becomes idle.
    opened.use()
    opened.connect({
      send: line.send,
      // With `retry` the host drains: this client cannot reconnect, and responses still use this connection.
      close(retry) {
        if (retry === undefined) line.close()
      },
    })
    if (closed) await leave(opened)
    return opened
  }

  /** Does not wait for requests, so that later cancellations and responses are handled. */
  async function handle(message: ValidMessage): Promise<void> {
    if (take(message)) return
    if (!session) {
      if (message.kind !== 'request') return
      if (message.method !== 'initialize') throw new HostError('invalidRequest', { detail: 'initialize must be first' })
      session = await open()
    }
    if (message.kind !== 'request') return receiveMessage(session, message)
    serveRequests(host, session, [message], sender, () => createLineReply(line))
      .catch(thrown => refuse(thrown, message))
      .catch(fail)
  }

  async function read(text: string): Promise<void> {
    if (failed) return
    let request: Extract<Message, { kind: 'request' }> | undefined
    try {
      const found = readMessages(text, 'message')
      if ('kind' in found && found.kind === 'invalid') return refuse(found.error, found)
      if (!('kind' in found)) requireBatches(session?.revision)
      for (const message of 'kind' in found ? [found] : validBatch(found)) {
        request = message.kind === 'request' ? message : undefined
        await handle(message)
      }
    } catch (thrown) {
      refuse(thrown, request)
    }
  }

  const stopWatch = host.watchCaller(caller, () => line.close())
  async function close() {
    closed = true
    stopWatch()
    if (session) await leave(session)
  }
  return {
    refuse,
    receive(text) {
      last = last.then(() => read(text)).catch(fail)
      return last
    },
    close,
  }
}
