// Sends calls to a server, retries them once if that is safe, and holds calls that wait for a response of the client.
import { loginExpired } from '../../core/auth.ts'
import { type CallContext, type CallToolResult, type JsonSchema, ToolError } from '../../core/index.ts'
import { CallQueue } from '../../core/internal.ts'
import type { Call } from '../../core/plugin.ts'
import { callOf, contextCancellation, InputRequired, roundOf } from '../../core/transport.ts'
import { RemoteError, type RequestOptions } from '../../remote/index.ts'
import { isLoginRound, isPerCaller, readStepUp, withLogin } from '../families/credentials/index.ts'
import { problemsOf } from '../families/upstream-calls/index.ts'
import { CallSessions } from './call-sessions.ts'
import { capabilitiesFor, cleanResult, paramsFor, readInputRequests } from './calls.ts'
import { changedError, type UpstreamClient } from './definitions.ts'
import {
  isNotFound,
  isSessionLost,
  isUnauthorized,
  isUnknownItem,
  isVersionRefused,
  reasonOf,
  toCallError,
} from './failures.ts'
import { ActiveCall, CallSlot } from './held.ts'
import { labelOf } from './names.ts'
import type { RelayResult } from './node-relay.ts'
import type { UpstreamParts, UpstreamServer } from './server-parts.ts'
import type { ServerSession, SessionLease } from './sessions.ts'
import { ContextClient, type Json, type RequestClient, UpstreamRequest } from './upstream-request.ts'

/** Maximum bytes of requests to a client, which are part of `requestState`. */
const MAX_INPUT_REQUEST_BYTES = 48_000
const TOO_LATE =
  'The call no longer waits for a response: it timed out, was already answered, or its node stopped. It may have been executed: check before you repeat it (MH2952).'

interface RoundState {
  /** The id of a held call, and the node that runs it. */
  readonly held?: string
  readonly node?: string
  /** The `requestState` of the server. */
  readonly upstream?: unknown
}

export class CallSender implements UpstreamClient {
  readonly sessions: CallSessions
  readonly queue: CallQueue
  readonly #server: UpstreamServer
  readonly #parts: UpstreamParts
  /** Listed tools that were missing in a call with the token of a user. */
  readonly #loggedUnknown = new Set<string>()
  /** Output schemas of tools whose results do not match. */
  readonly #loggedMismatches = new WeakSet<JsonSchema>()
  /** Calls in progress, including held calls. */
  #active = 0
  #whenIdle: (() => void) | undefined

  constructor(server: UpstreamServer, parts: UpstreamParts) {
    this.#server = server
    this.#parts = parts
    this.sessions = new CallSessions(server, parts)
    const { name, concurrency, callTimeout } = parts.settings
    const limits = { tool: name, most: concurrency, timeout: callTimeout, clock: parts.host.clock }
    this.queue = new CallQueue(limits, parts.busy, () => undefined)
  }

  /** True if no call is in progress. */
  get isIdle(): boolean {
    return this.#active === 0
  }

  /** Calls `next` after the last call in progress. */
  onIdle(next: () => void): void {
    this.#whenIdle = next
  }

  async call(method: string, params: Json, ctx: CallContext, outputSchema?: JsonSchema): Promise<object> {
    const record = { name: this.#parts.settings.name, tool: params['name'] }
    return this.#track(ctx, async call => {
      try {
        return await this.#parts.record(call, record, async () => {
          const result = await withLogin(ctx, () => this.#call(method, params, ctx, call))
          return outputSchema ? this.#checkOutput(result, outputSchema, record.tool) : result
        })
      } catch (error) {
        this.#server.reportUnreachable(error)
        if (isUnknownItem(error)) this.#handleUnknownItem(method, params['name'], error as Error)
        // If the lists are refused, too, the host connects again.
        else if (isVersionRefused(error)) this.#server.lists.requestRefresh()
        // The resource does not exist, so there is no result.
        if (method === 'resources/read' && isNotFound(error)) return undefined as never
        throw error
      }
    })
  }

  async complete(ref: Json, argument: Json, context: Json, ctx: CallContext): Promise<{ values: string[] }> {
    return this.#track(ctx, async call => {
      const { completion } = (await this.#send('completion/complete', { ref, argument, context }, ctx, call)) as Json
      const values = (completion as { values?: unknown } | undefined)?.values
      return { ...(completion as object), values: Array.isArray(values) ? values.map(String) : [] }
    })
  }

  /** Counts a call as in progress until `run` ends. Converts its error to one for the caller. */
  async #track<Value>(ctx: CallContext, run: (call: Call) => Promise<Value>): Promise<Value> {
    const call = callOf(ctx)
    if (!call) throw new Error('the context does not belong to a call')
    this.#active++
    try {
      return await run(call)
    } catch (error) {
      throw this.#toCallerError(error, call)
    } finally {
      this.#endCall()
    }
  }

  /** Continues a held call for a client at another node. */
  async continueHeld(id: string, responses: Json, client: RequestClient): Promise<RelayResult> {
    const active = this.#parts.held.take(id)
    if (!active) return { gone: true }
    const { run } = active
    await active.slot.retake()
    run.answer(responses)
    await run.next(client)
    const { outcome, requests } = run
    try {
      if (!outcome) return { requests, held: this.#storeHeld(active, true) }
    } catch (error) {
      return { refusal: (error as Error).message }
    }
    active.end()
    if ('result' in outcome) return outcome
    const { error } = outcome
    const known = error instanceof RemoteError ? error : new RemoteError('lost', String(error), { executed: 'maybe' })
    const { reason, message, code, data, status, executed } = known
    return { failure: { reason, message, code, data, status, executed } }
  }

  giveUpHeld(id: string): void {
    this.#parts.held.giveUp(id)
  }

  #endCall() {
    if (--this.#active === 0) this.#whenIdle?.()
  }

  /** Reads the lists again. Warns once per tool: with tokens of callers, a server can have a tool for some of them only. */
  #handleUnknownItem(method: string, tool: unknown, { message }: Error) {
    this.#server.lists.requestRefresh()
    if (
      method !== 'tools/call' ||
      !isPerCaller(this.#parts.settings.http?.auth) ||
      typeof tool !== 'string' ||
      !message.includes(tool) ||
      this.#loggedUnknown.has(tool)
    )
      return
    this.#loggedUnknown.add(tool)
    this.#parts.host.log.warn(
      { code: 'MH2958', upstream: this.#parts.settings.name, upstreamTool: tool },
      'a listed tool does not exist for this user of an upstream server: lists are not per user',
    )
  }

  /** Replaces a result that does not match its schema with an error. Logs the first one of each definition. */
  async #checkOutput(result: object, schema: JsonSchema, upstreamTool: unknown): Promise<object> {
    const { structuredContent, content = [], isError } = result as Partial<CallToolResult>
    if (result instanceof InputRequired || isError) return result
    const isMissing = structuredContent === undefined
    const problems = isMissing ? 'it has no structured content' : await problemsOf(structuredContent, schema, 'output')
    if (problems === undefined) return result
    const { name: upstream } = this.#parts.settings
    if (!this.#loggedMismatches.has(schema)) {
      const fields = { upstream, upstreamTool, problems }
      this.#parts.host.log.warn(
        { code: 'MH2957', ...fields },
        'a result of an upstream server does not match its output schema',
      )
    }
    this.#loggedMismatches.add(schema)
    const text = `The result of the server "${upstream}" does not match the output schema of the tool (MH2957):\n${problems}`
    return { content: [{ type: 'text', text }, ...content], isError: true }
  }

  #toCallerError(error: unknown, call: Call): Error {
    const { http, name } = this.#parts.settings
    this.#parts.host.log.debug({ upstream: name, reason: reasonOf(error) }, 'a request to an upstream server failed')
    if (!isUnauthorized(error) || http?.auth?.kind !== 'bridge')
      return toCallError(name, error, this.#server.outageStart)
    // The token belongs to the caller's login at this host, which the client can renew.
    const { route, params } = call.offer
    const caller = { user: call.user, route, params }
    return loginExpired(this.#parts.host.services, caller, `the server "${name}" refused the token of the user`)
  }

  async #call(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    const round = roundOf(ctx)
    const state = round?.state as RoundState | undefined
    if (round && state?.held !== undefined) {
      const { held, node = '' } = state
      if (node !== this.#parts.nodeRelay.nodeOf(call)) return this.#forward({ held, node }, params, ctx, call)
      const active = this.#parts.held.take(held)
      if (!active) throw this.#notHeldError(node, 'the call has ended', params)
      await active.slot.retake()
      active.run.answer(round.responses)
      await active.run.next(new ContextClient(ctx, call))
      return this.#toResult(active, call)
    }
    const sent = paramsFor(this.#parts.settings, params, call)
    if (!round || isLoginRound(round.state)) return this.#send(method, sent, ctx, call)
    const continuation = { inputResponses: round.responses, requestState: state?.upstream }
    return this.#send(method, { ...sent, ...continuation }, ctx, call)
  }

  #notHeldError(node: string, reason: string, { name: tool }: Json): ToolError {
    const fields = { upstream: this.#parts.settings.name, upstreamTool: tool, node, reason }
    this.#parts.host.log.info({ code: 'MH2952', ...fields }, 'a response arrived for a call that is no longer held')
    return new ToolError(TOO_LATE)
  }

  /** Continues a call that another node holds. */
  async #forward(
    { held, node }: { readonly held: string; readonly node: string },
    params: Json,
    ctx: CallContext,
    call: Call,
  ): Promise<object> {
    const { nodeRelay } = this.#parts
    const { name, callTimeout: timeout } = this.#parts.settings
    const { logLevel } = call
    const { capabilities } = new ContextClient(ctx, call)
    const responses = roundOf(ctx)?.responses ?? {}
    const resume = { server: name, held, responses, capabilities, logLevel }
    const end = await nodeRelay.forward(ctx, call, node, resume, timeout)
    if ('gone' in end) throw this.#notHeldError(node, 'the call has ended at its node', params)
    if ('isLost' in end) throw this.#notHeldError(node, 'the node of the call does not respond', params)
    if ('refusal' in end) throw new ToolError(end.refusal)
    if ('failure' in end) throw new RemoteError(end.failure.reason, end.failure.message, end.failure)
    if ('result' in end) return this.#readResult(end.result, params)
    return new InputRequired(end.requests as InputRequired['requests'], { held: end.held, node }, () =>
      nodeRelay.giveUp(call, node, name, end.held),
    )
  }

  /** Sends a call. Retries it once if the server did not execute it, or if it only reads. */
  async #send(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    try {
      return await this.#sendOnce(method, params, ctx, call)
    } catch (error) {
      if (contextCancellation(ctx).aborted || !this.#canRepeat(error, call, method)) throw error
      return this.#sendOnce(method, params, ctx, call)
    }
  }

  async #sendOnce(method: string, params: Json, ctx: CallContext, call: Call): Promise<object> {
    const slot = new CallSlot(this.queue, call)
    if (slot.ready) await slot.ready
    let active: ActiveCall
    try {
      if (contextCancellation(ctx).aborted) throw new RemoteError('cancelled', 'the call was cancelled')
      active = this.#start(method, params, call, slot, await this.sessions.acquire(ctx, call))
    } catch (error) {
      slot.leave()
      throw error
    }
    await active.run.next(new ContextClient(ctx, call))
    return this.#toResult(active, call)
  }

  #start(method: string, params: Json, call: Call, slot: CallSlot, { session, release }: SessionLease): ActiveCall {
    // The lists may have changed since the call began.
    const kind = method === 'tools/call' ? 'tool' : 'prompt'
    if (
      this.#server.lists.withheld.size > 0 &&
      method !== 'resources/read' &&
      this.#server.lists.withheld.has(labelOf(kind, params['name']))
    ) {
      release()
      throw changedError(kind, this.#parts.settings.name)
    }
    this.#setLogLevel(call, session)
    const run = new UpstreamRequest({ settings: this.#parts.settings, clock: this.#parts.host.clock })
    session.runs?.add(run)
    this.#active++
    const end = () => {
      const { outcome } = run
      if (outcome && 'error' in outcome && isSessionLost(outcome.error)) this.#dropSession(session, outcome.error)
      session.runs?.delete(run)
      release()
      slot.leave()
      this.#endCall()
    }
    run.start(session.connection, method, this.#addTrace(params, call), this.#requestOptions(call, session))
    return new ActiveCall(run, params, call, slot, end)
  }

  /** Ends a session that the server has lost. The next call opens another one. */
  #dropSession({ connection, close }: ServerSession, error: RemoteError) {
    if (!close) return this.#server.reconnect(error, connection)
    this.sessions.reportLost(error)
    close()
  }

  #capabilitiesOf({ asks, client }: Call) {
    return asks ? capabilitiesFor(this.#parts.settings, client.capabilities) : {}
  }

  #requestOptions(call: Call, { connection }: ServerSession): RequestOptions {
    const { logLevel } = call
    const isModern = connection.era === 'modern'
    return {
      headers: this.sessions.headersFor(call),
      capabilities: isModern ? this.#capabilitiesOf(call) : undefined,
      logLevel: isModern ? logLevel : undefined,
    }
  }

  /** Requests the caller's log level from a legacy server. */
  #setLogLevel(call: Call, session: ServerSession) {
    const { connection } = session
    const { logLevel } = call
    if (connection.era === 'modern' || !session.runs || !connection.capabilities.logging) return
    if (logLevel === undefined || session.logLevel === logLevel) return
    session.logLevel = logLevel
    connection.request('logging/setLevel', { level: logLevel }).catch(() => undefined)
  }

  /** Adds the trace context of the call, in place of the caller's. */
  #addTrace(params: Json, call: Call): Json {
    const trace = this.#parts.host.services.slot('tracer', call.offer.route).headersFor(call)
    return Object.keys(trace).length === 0 ? params : { ...params, _meta: { ...(params['_meta'] as Json), ...trace } }
  }

  /** True if the server certainly did not execute the call or only reads, and a retry can succeed. */
  #canRepeat(error: unknown, call: Call, method: string): boolean {
    if (!(error instanceof RemoteError)) return false
    if (error.executed !== 'no') return error.reason === 'lost' && method !== 'tools/call'
    const stepUp = readStepUp(error.status, error.challenge)
    if (isUnauthorized(error) || stepUp !== undefined) return this.sessions.invalidateToken(call, stepUp)
    return error.reason === 'lost'
  }

  /** Returns the result, or the requests of the server to the caller. */
  #toResult(active: ActiveCall, call: Call): object {
    const { run, params, end } = active
    const { outcome } = run
    if (!outcome) return this.#holdCall(active, call)
    end()
    if ('error' in outcome) throw outcome.error
    return this.#readResult(outcome.result, params)
  }

  #readResult(result: Json, params: Json): object {
    const { name } = this.#parts.settings
    const input = readInputRequests(result, this.#parts.settings)
    if (!input) return cleanResult(result, this.#parts.settings)
    if (Object.keys(input.requests).length > 0) return new InputRequired(input.requests, { upstream: input.state })
    const what = params['name'] ?? params['uri']
    throw new ToolError(`The server "${name}" cannot execute "${what}" now. Try again later.`)
  }

  #holdCall(active: ActiveCall, call: Call): object {
    const { held, nodeRelay } = this.#parts
    const { requests } = active.run
    const id = this.#storeHeld(active, call.asks === 'input_required')
    // Only clients with a session can cancel the call now: for other clients, the request has already ended.
    if (typeof call.asks === 'object') call.signal.addEventListener('abort', () => held.giveUp(id), { once: true })
    return new InputRequired(requests, { held: id, node: nodeRelay.nodeOf(call) }, () => held.giveUp(id))
  }

  /** Holds a call. Gives it up and throws above the limits. `isSealed`: its requests are part of `requestState`. */
  #storeHeld(active: ActiveCall, isSealed: boolean): string {
    const { run, end } = active
    try {
      if (isSealed && Buffer.byteLength(JSON.stringify(run.requests)) > MAX_INPUT_REQUEST_BYTES)
        throw new ToolError(`A request of the server "${this.#parts.settings.name}" to the user is too large.`)
      const id = this.#parts.held.add(active)
      active.slot.leave()
      return id
    } catch (error) {
      run.giveUp()
      end()
      throw error
    }
  }
}
