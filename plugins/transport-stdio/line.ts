// One client at the other end of a line, until either side ends it: one session for what begins with `initialize`, and
// requests that carry their own version one by one. Between the lines and the services of the host.
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
import { type Line, readLines } from './lines.ts'
import { createOutput } from './output.ts'
import { createOwnRequests } from './own-requests.ts'
import type { Caller, StdioEnds } from './streams.ts'

/** A line that is served. */
export interface ServedLine {
  /** Resolves when the client has ended its input or is gone, or the session is over: what runs may still be answered. */
  readonly ended: Promise<void>
  /** Aborts what still runs; resolves when what was answered is on its way. */
  close(): Promise<void>
}

const GONE = () => new Error('the client is gone')

function textOf(line: Line, most: number): string {
  if ('text' in line) return line.text
  if (line.fault === 'too long') throw new HostError('payloadTooLarge', { detail: `a line has at most ${most} bytes` })
  throw new HostError('parseError', { detail: 'the line is not UTF-8' })
}

/** Serves one client. Throws a HostError, `unauthorized` or `forbidden`, where the route's `authorize` refuses the user. */
export function serveLine(host: Transport, caller: Caller, ends: StdioEnds): ServedLine {
  const { route, params, user } = caller
  host.admit({ route, params, user })
  const sender = { headers: {}, user }
  const { promise: ended, resolve: end } = settleable()
  let session: Session | undefined

  const output = createOutput(ends.output, {
    gone(why) {
      if (why === 'unread') host.log.warn({}, 'closed the line of a client that does not read')
      abandon()
    },
  })
  const own = createOwnRequests(host, caller, output)

  /** Nobody is there any more: what runs is aborted. */
  function abandon() {
    own.cancelAll(GONE())
    if (session && !session.disposed) {
      host.sessions.end(session, GONE()).catch(err => host.log.warn({ err }, 'a session could not be ended everywhere'))
    }
    end()
  }

  /** `request`: what of it could be read. */
  function refuse(
    thrown: unknown,
    request?: { readonly id?: RequestId | undefined; readonly method?: string },
    revision: string | undefined = session?.revision,
  ) {
    const known = HostError.is(thrown)
    if (!known) host.log.error({ err: thrown, route: route.path }, 'a message failed')
    const error = known ? thrown : new HostError('internal')
    const { client, transport, id: sessionId } = session ?? { client: undefined, transport: host.name, id: undefined }
    host.tellRefused({
      ...sender,
      error,
      method: request?.method,
      route,
      ip: 'stdio',
      client,
      revision,
      transport,
      sessionId,
    })
    output.respond(encodeError(error, { id: request?.id, revision }))
  }

  async function open(): Promise<Session> {
    const signal = () => new AbortController().signal
    const opened = await host.sessions.open({ route, params, user, headers: {}, ip: 'stdio', signal }, host.name)
    // In use for as long as the client is there, so that it is not swept as idle.
    opened.use()
    opened.connect({
      send: message => output.send(message),
      // With `retry` the host drains and clients may come back. This one cannot, and answers still come this way.
      close: retry => {
        if (retry === undefined) end()
      },
    })
    return opened
  }

  /** True where it cancels a request that belongs to no session. */
  function cancelsOwn(message: ValidMessage): boolean {
    if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return false
    const { requestId, reason } = message.params
    const why = typeof reason === 'string' ? shown(reason) : 'the client cancelled the request'
    return own.cancel(requestId, new Error(why))
  }

  async function take(message: ValidMessage): Promise<void> {
    // Requests are not waited for: a cancellation, or the answer to a question, must get past them.
    if (message.kind === 'request' && namesOwnVersion(message)) {
      own.answer(message).catch(thrown => refuse(thrown, message, MODERN_REVISION))
      return
    }
    if (cancelsOwn(message)) return
    if (!session) {
      if (message.kind !== 'request') return
      if (message.method !== 'initialize') throw notInitialized()
      session = await open()
      if (output.closed) return abandon()
    }
    if (message.kind !== 'request') return receiveMessage(session, message)
    void serveRequests(host, session, [message], sender, () => createLineReply(output))
  }

  async function read(line: Line): Promise<void> {
    let request: Extract<ValidMessage, { kind: 'request' }> | undefined
    try {
      const text = textOf(line, host.http.maxBodySize)
      if (text.trim() === '') return
      const found = readMessages(text)
      if ('kind' in found && found.kind === 'invalid') return refuse(found.error, found)
      if (!('kind' in found)) demandBatches(session?.revision)
      // The requests of a batch are answered one by one, as each is ready.
      for (const message of 'kind' in found ? [found] : validBatch(found)) {
        request = message.kind === 'request' ? message : undefined
        await take(message)
      }
    } catch (thrown) {
      refuse(thrown, request)
    }
  }

  async function readAll() {
    for await (const line of readLines(ends.input, host.http.maxBodySize)) {
      if (output.closed) break
      await read(line)
      await output.drained()
    }
    end()
  }
  // What `read` throws it has answered.
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

const notInitialized = () =>
  new HostError('invalidRequest', {
    detail: `initialize comes first; or each request names its version in its _meta (${MODERN_REVISION})`,
  })

function settleable() {
  let resolve = () => {}
  const promise = new Promise<void>(settle => {
    resolve = settle
  })
  return { promise, resolve }
}
