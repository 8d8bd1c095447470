// Serves requests for every transport, with and without a session; delivers responses and notifications of sessions.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError } from '../http/errors.ts'
import type { Timeline } from '../kernel/endpoint.ts'
import type { Logger } from '../kernel/log.ts'
import type { User } from '../kernel/user.ts'
import {
  type Call,
  type CallReply,
  type ClientInfo,
  type Offer,
  type RequestInfo,
  TransportCall,
} from '../mcp/calls/call.ts'
import type { RefusedRequest } from '../mcp/calls/call-record.ts'
import { checkClientInfo, limitOwnerOf, shown } from '../mcp/client-limits.ts'
import { encodeResponse } from '../mcp/dispatch.ts'
import { Cancellation } from '../mcp/wire/cancellation.ts'
import { encodeError, isObject, isShortName, type Message, nodeLost } from '../mcp/wire/message.ts'
import type { Implementation, LogLevel } from '../mcp/wire/protocol.ts'
import { isHandshakeRevision, LATEST_HANDSHAKE, type Revision, rulesOf } from '../mcp/wire/revisions.ts'
import type { CountedCalls, RunningCalls } from './running-calls.ts'
import { Session } from './session.ts'
import { running } from './session-errors.ts'

/** The HTTP request of a message. Its token can differ from the session's first token. */
export interface Sender {
  readonly headers: IncomingHttpHeaders
  readonly user: User | undefined
  readonly state?: { hasRecords?: true; readonly timeline?: Timeline | undefined }
  /** True for a single request with its own HTTP response, whose refusal is already recorded. */
  readonly refusalRecorded?: boolean
}

/** The data of a request without a session. */
export interface PerRequest {
  readonly facts: RequestInfo
  readonly revision: Revision
  readonly client: ClientInfo
  readonly logLevel: LogLevel | undefined
  /** Throws to refuse the call before it runs. */
  readonly checkCall?: ((call: Call) => void) | undefined
}

/** Host functions for `serveRequests`. */
export interface ServeDependencies {
  readonly log: Logger
  readonly sessions: { readonly calls: RunningCalls }
  makeOffer(facts: RequestInfo): Offer | Promise<Offer>
  dispatch(call: Call): Promise<object>
  reportRefused(refused: RefusedRequest): void
  trackRequest(cancel: (reason: Error) => void): () => void
}

type Request = Extract<Message, { kind: 'request' }>

async function serveRequest(
  host: ServeDependencies,
  origin: Session | PerRequest,
  request: Request,
  reply: CallReply,
  sender: Sender,
  counted: CountedCalls,
  leaveHost?: () => void,
): Promise<void> {
  const { id, method, params } = request
  const { headers, user, state } = sender
  const session = origin instanceof Session ? origin : undefined
  const perRequest = origin instanceof Session ? undefined : origin
  const { revision = LATEST_HANDSHAKE } = origin
  const timeline = sender.refusalRecorded ? state?.timeline : state?.timeline?.fork()
  timeline?.mark('check')
  let stage = 'new' as 'new' | 'started' | 'called'
  try {
    if (session) {
      if (method === 'initialize' && session.revision !== undefined) {
        throw new HostError('invalidRequest', { detail: 'the session is already initialized' })
      }
      if (!session.startCall(id, reply)) throw running(id)
      stage = 'started'
      if (method === 'initialize') negotiate(session, params)
    }
    const offered = origin instanceof Session ? origin.offerFor(user) : host.makeOffer(origin.facts)
    const offer = offered instanceof Promise ? await offered : offered
    const call = new TransportCall({
      id,
      method,
      params,
      headers,
      user,
      revision: origin.revision ?? LATEST_HANDSHAKE,
      offer,
      session,
      client: origin.client,
      logLevel: perRequest?.logLevel,
      channel: reply,
      timeline,
      asks: session ?? (rulesOf(revision).handshake ? undefined : 'input_required'),
    })
    perRequest?.checkCall?.(call)
    let result: object | undefined
    const answerCall = async () => {
      stage = 'called'
      if (state) state.hasRecords = true
      result = await host.dispatch(call)
    }
    // A session already runs inside its `runSession`.
    if (perRequest && offer.hasRunSession) await offer.run(answerCall)
    else await answerCall()
    const response = encodeResponse(host, call, result ?? {})
    if (session?.revision && method === 'initialize') {
      await session.keep({ revision: session.revision, client: session.client })
    }
    // The request ends before the response is sent: the client can then reuse the id on another node.
    session?.finishCall(id)
    reply.respond(response)
  } catch (thrown) {
    const error = HostError.is(thrown) ? thrown : new HostError('internal')
    const { route, ip } = origin instanceof Session ? origin.offer : origin.facts
    if (error !== thrown) host.log.error({ code: 'MH1610', err: thrown, method, route: route.path }, 'a call failed')
    if (session && stage !== 'new' && method === 'initialize') session.revision = undefined
    if (stage !== 'called' && !sender.refusalRecorded) {
      if (state) state.hasRecords = true
      const { client, revision } = origin
      const from = { transport: session?.transport, sessionId: session?.id, timeline }
      host.reportRefused({ error, method, headers, user, route, ip, client, revision, ...from })
    }
    reply.respond(encodeError(error, { id, revision }), error)
  } finally {
    timeline?.end()
    if (session && stage !== 'new') session.finishCall(id)
    host.sessions.calls.leave(counted, 1)
    leaveHost?.()
  }
}

function negotiate(session: Session, params: Request['params']): void {
  checkClientInfo(params)
  const { protocolVersion, clientInfo, capabilities } = params
  session.revision = isHandshakeRevision(protocolVersion) ? protocolVersion : LATEST_HANDSHAKE
  session.client = {
    info: isObject(clientInfo) ? (clientInfo as unknown as Implementation) : undefined,
    capabilities: isObject(capabilities) ? capabilities : {},
  }
}

/**
 * Resolves when all handlers have ended; their errors are sent as responses. Throws `tooManyRequests`,
 * `sessionNotFound` and `unavailable` synchronously, before any handler starts.
 */
export function serveRequests(
  host: ServeDependencies,
  origin: Session | PerRequest,
  requests: readonly Request[],
  sender: Sender,
  createReply: (request: Request) => CallReply,
): Promise<void> {
  const session = origin instanceof Session ? origin : undefined
  const served: Array<readonly [Request, CallReply]> = []
  let leave: (() => void) | undefined
  const counted = session ?? { holder: limitOwnerOf((origin as PerRequest).facts), calls: 0, disposed: false }
  host.sessions.calls.enter(counted, requests.length)
  try {
    leave = host.trackRequest(reason => {
      const error = nodeLost()
      for (const [{ id }, reply] of served) {
        session?.finishCall(id)
        reply.respond(encodeError(error, { id, revision: origin.revision }), session && error)
        reply.cancel(reason)
      }
    })
    for (const request of requests) served.push([request, createReply(request)])
  } catch (thrown) {
    leave?.()
    host.sessions.calls.leave(counted, requests.length)
    throw thrown
  }
  const [only] = served
  if (only && served.length === 1) return serveRequest(host, origin, ...only, sender, counted, leave)
  const all = served.map(([request, reply]) => serveRequest(host, origin, request, reply, sender, counted))
  return Promise.all(all).then(leave)
}

/** Handles a response or notification. Returns a promise if another node must receive it. */
export function receiveMessage(
  session: Session,
  message: Extract<Message, { kind: 'response' | 'notification' }>,
): Promise<void> | undefined {
  if (message.kind === 'response') return session.receiveResponse(message.id, message.body)
  if (message.method !== 'notifications/cancelled') return undefined
  const { requestId, reason } = message.params
  // Limits the size of data sent to other nodes.
  if (!isShortName(requestId)) return undefined
  return session.cancel(requestId, typeof reason === 'string' ? shown(reason) : 'the client cancelled the request')
}

/** A connection to one client. */
export interface ReplyLine {
  send(message: string): void
  respond?(message: string): void
}

/** A reply for transports with one connection per session. Sends nothing after the response. */
export function createLineReply(line: ReplyLine): Required<CallReply> {
  const cancellation = new Cancellation()
  let ended = false
  return {
    cancellation,
    send(message) {
      if (!ended) line.send(message)
    },
    respond(response) {
      if (ended) return
      ended = true
      const message = String(response)
      if (line.respond) line.respond(message)
      else line.send(message)
    },
    cancel(reason) {
      ended = true
      cancellation.abort(reason)
    },
    disconnect() {},
    hold: () => () => undefined,
  }
}
