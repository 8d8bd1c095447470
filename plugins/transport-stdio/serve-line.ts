// Serves one client over a stdio connection: a session after `initialize`, and requests with their own version.
import { HostError } from '../../core/index.ts'
import {
  createLineReply,
  demandBatches,
  encodeError,
  MODERN_REVISION,
  type RequestId,
  readMessages,
  receiveMessage,
  type Session,
  serveRequests,
  shown,
  type Transport,
  type ValidMessage,
  validBatch,
} from '../../core/transport.ts'
import { namesOwnVersion } from '../families/per-request/index.ts'
import { createOutput, type Line, readLines, type StdioEnds } from './lines.ts'
import { type Caller, createPerRequest } from './per-request.ts'

export interface ServedLine {
  /** Resolves when client or session has ended. Running requests can still be answered. */
  readonly ended: Promise<void>
  /** Cancels running requests; resolves when all responses are written. */
  close(): Promise<void>
}

const GONE = () => new Error('the client is gone')

function textOf(line: Line, most: number): string {
  if ('text' in line) return line.text
  if (line.fault === 'too long') throw new HostError('payloadTooLarge', { detail: `a line has at most ${most} bytes` })
  throw new HostError('parseError', { detail: 'the line is not UTF-8' })
}

/** Throws a HostError, `unauthorized` or `forbidden`, if the route's `authorize` refuses the user. */
export function serveLine(host: Transport, caller: Caller, ends: StdioEnds): ServedLine {
  const { route, params, user } = caller
  host.admit({ route, params, user })
  const sender = { headers: {}, user }
  let end = () => {}
  const ended = new Promise<void>(resolve => {
    end = resolve
  })
  let session: Session | undefined

  const output = createOutput(ends.output, {
    gone(why) {
      if (why === 'unread') host.log.warn({ code: 'MH1309' }, 'closed the line of a client that does not read')
      abandon()
    },
  })
  const perRequest = createPerRequest(host, caller, output)

  function abandon() {
    perRequest.cancelAll(GONE())
    if (session && !session.disposed) {
      host.sessions
        .end(session, GONE())
        .catch(err => host.log.warn({ code: 'MH1413', err }, 'a session could not be ended everywhere'))
    }
    end()
  }

  function refuse(
    thrown: unknown,
    request?: { readonly id?: RequestId | undefined; readonly method?: string },
    revision: string | undefined = session?.revision,
  ) {
    const error = HostError.is(thrown) ? thrown : new HostError('internal')
    if (error !== thrown) host.log.error({ code: 'MH1610', err: thrown, route: route.path }, 'a message failed')
    const { client, transport, id: sessionId } = session ?? { client: undefined, transport: host.name, id: undefined }
    const facts = { method: request?.method, route, ip: 'stdio', client, revision, transport, sessionId }
    host.tellRefused({ ...sender, ...facts, error })
    output.respond(encodeError(error, { id: request?.id, revision }))
  }

  async function open(): Promise<Session> {
    const signal = () => new AbortController().signal
    const opened = await host.sessions.open({ route, params, user, headers: {}, ip: 'stdio', signal }, host.name)
    // In use until the client is gone, so it never idles.
    opened.use()
    opened.connect({
      send: message => output.send(message),
      // With `retry` the host drains: this client cannot reconnect, and responses still use this connection.
      close: retry => {
        if (retry === undefined) end()
      },
    })
    return opened
  }

  function cancelsPerRequest(message: ValidMessage): boolean {
    if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return false
    const { requestId, reason } = message.params
    const why = typeof reason === 'string' ? shown(reason) : 'the client cancelled the request'
    return perRequest.cancel(requestId, new Error(why))
  }

  /** Does not wait for requests, so that cancellations and responses can follow. */
  async function take(message: ValidMessage): Promise<void> {
    if (message.kind === 'request' && namesOwnVersion(message)) {
      perRequest.answer(message).catch(thrown => refuse(thrown, message, MODERN_REVISION))
      return
    }
    if (cancelsPerRequest(message)) return
    if (!session) {
      if (message.kind !== 'request') return
      if (message.method !== 'initialize') {
        const detail = `initialize comes first; or each request names its version in its _meta (${MODERN_REVISION})`
        throw new HostError('invalidRequest', { detail })
      }
      session = await open()
      if (output.closed) return abandon()
    }
    if (message.kind !== 'request') return receiveMessage(session, message)
    void serveRequests(host, session, [message], sender, () => createLineReply(output))
  }

  async function read(line: Line): Promise<void> {
    let request: Extract<ValidMessage, { kind: 'request' }> | undefined
    try {
      const text = textOf(line, host.config.http.maxBodySize)
      if (text.trim() === '') return
      const found = readMessages(text)
      if ('kind' in found && found.kind === 'invalid') return refuse(found.error, found)
      if (!('kind' in found)) demandBatches(session?.revision)
      for (const message of 'kind' in found ? [found] : validBatch(found)) {
        request = message.kind === 'request' ? message : undefined
        await take(message)
      }
    } catch (thrown) {
      refuse(thrown, request)
    }
  }

  async function readAll() {
    for await (const line of readLines(ends.input, host.config.http.maxBodySize)) {
      if (output.closed) break
      await read(line)
      await output.drained()
    }
    end()
  }
  void readAll()

  return {
    ended,
    async close() {
      await output.end()
      abandon()
      ends.input.destroy()
    },
  }
}
