// A message of a session, whatever transport brought it: requests become Calls, answers find their question,
// notifications do what they say.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError, nodeLost } from '../kernel/errors.ts'
import type { Logger } from '../kernel/log.ts'
import type { User } from '../kernel/user.ts'
import type { Call, CallRequest } from '../mcp/call.ts'
import { isObject } from '../mcp/call.ts'
import { checkClientFacts, isShortName, shown } from '../mcp/client-said.ts'
import type { Message } from '../mcp/message.ts'
import { HANDSHAKE_REVISIONS, type Implementation, isHandshakeRevision, type RequestId } from '../mcp/protocol.ts'
import { encodeAnswer, encodeError } from '../mcp/wire.ts'
import type { Session } from './session.ts'

/** How the answer to one request travels. */
export interface SessionReply {
  /** A message that belongs to the request and comes before its answer. */
  send(message: string): void
  /** The answer, and the error it is, if it is one. */
  respond(message: string, error?: HostError): void
  /** Aborts when the request is cancelled or the session ends. */
  signal(): AbortSignal
  cancel(reason: Error): void
  disconnect?(retry?: number): void
}

/** What the HTTP request says that brought a message: its user may have another token than who opened the session. */
export interface Sender {
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
}

/** What answers Calls, and where failures are told. */
export interface Answering {
  readonly log: Logger
  createCall(request: CallRequest): Call
  answer(call: Call): Promise<object>
}

type Request = Extract<Message, { kind: 'request' }>

/** Cancels a request because the host stops, and tells its client, unless it was answered. */
export function stopRequest(session: Session, id: RequestId, reply: SessionReply, reason: Error): void {
  const error = nodeLost()
  if (session.runs(id)) {
    session.finish(id)
    reply.respond(encodeError(error, { id, revision: session.revision }), error)
  }
  reply.cancel(reason)
}

/** Answers the requests of a session's client. */
async function serveRequest(
  host: Answering,
  session: Session,
  request: Request,
  sender: Sender,
  reply: SessionReply,
): Promise<void> {
  const { id, method, params } = request
  const { revision = HANDSHAKE_REVISIONS[0] } = session
  const refuse = (error: HostError) => reply.respond(encodeError(error, { id, revision }), error)
  if (method === 'initialize' && session.revision !== undefined) {
    return refuse(new HostError('invalidRequest', { detail: 'the session is initialized already' }))
  }
  if (!session.begin(id, reason => reply.cancel(reason))) {
    return refuse(new HostError('invalidRequest', { detail: `a request with the id ${JSON.stringify(id)} is running` }))
  }
  const leave = session.use()
  let answered = false
  // What a handler says after its answer is heard by nobody.
  const send = (message: string) => {
    if (!answered) reply.send(message)
  }
  try {
    if (method === 'initialize') negotiate(session, params)
    const call = host.createCall(callRequest(session, request, sender, { ...reply, send }))
    const answer = encodeAnswer(host, call, await host.answer(call))
    const { revision: negotiated, client } = session
    if (method === 'initialize' && negotiated) await session.keep({ revision: negotiated, client })
    answered = true
    // Before the client can know of it: it may send the same id to another node next.
    session.finish(id)
    reply.respond(answer)
  } catch (thrown) {
    answered = true
    if (method === 'initialize') session.revision = undefined
    const error = HostError.is(thrown) ? thrown : new HostError('internal')
    if (!HostError.is(thrown)) host.log.error({ err: thrown, method }, 'a call failed')
    refuse(error)
  } finally {
    session.finish(id)
    leave()
  }
}

function callRequest(session: Session, request: Request, { headers, user }: Sender, reply: SessionReply): CallRequest {
  const { id, method, params } = request
  return {
    id,
    method,
    params,
    headers,
    user,
    revision: session.revision ?? HANDSHAKE_REVISIONS[0],
    session: session.opened,
    live: session,
    client: session.client,
    // As it is when something is said, not when the call began.
    get logLevel() {
      return session.logLevel
    },
    send: message => reply.send(message),
    signal: () => reply.signal(),
    asks: (asked, fields, signal) => session.ask(message => reply.send(message), asked, fields, signal),
    ...(reply.disconnect && { disconnect: retry => reply.disconnect?.(retry) }),
  }
}

/** Keeps what `initialize` says; the newest handshake revision where the asked-for one is not ours. */
function negotiate(session: Session, params: Request['params']): void {
  checkClientFacts(params)
  const { protocolVersion, clientInfo, capabilities } = params
  session.revision = isHandshakeRevision(protocolVersion) ? protocolVersion : HANDSHAKE_REVISIONS[0]
  session.client = {
    info: isObject(clientInfo) ? (clientInfo as unknown as Implementation) : undefined,
    capabilities: isObject(capabilities) ? capabilities : {},
  }
}

function receiveNotification(
  session: Session,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<void> | undefined {
  if (method !== 'notifications/cancelled') return undefined
  const { requestId, reason } = params
  // It is looked up, here and at other nodes, and its reason is told to them and to whoever was asked.
  if (!isShortName(requestId)) return undefined
  return session.cancel(requestId, typeof reason === 'string' ? shown(reason) : 'the client cancelled the request')
}

/**
 * Takes one message of a session. A request is answered on `reply`, which only it needs; everything else is done when
 * this returns, or its promise resolves: where another node is to hear of it, once that is sure to.
 */
export function serveSessionMessage(
  host: Answering,
  session: Session,
  message: Exclude<Message, { kind: 'invalid' }>,
  sender: Sender,
  reply: () => SessionReply,
): Promise<void> | undefined {
  if (message.kind === 'request') return serveRequest(host, session, message, sender, reply())
  if (message.kind === 'response') return session.answer(message.id, message.body)
  return receiveNotification(session, message.method, message.params)
}
