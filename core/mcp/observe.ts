// Tells plugins of each request when it is over: of every Call, outermost of its way (core/mcp/dispatch.ts), and of HTTP
// requests that became none (core/kernel/pipeline.ts), such as those that were refused before.
import type { IncomingHttpHeaders } from 'node:http'
import { blamed } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import type { HostContext } from '../kernel/endpoint.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import { type Note, notesFor } from '../kernel/set-up.ts'
import type { Call } from './call.ts'
import { watchCall } from './call-notes.ts'
import {
  type CallRecord,
  type CallStart,
  ObservedCall,
  OTHER,
  type Outcome,
  type RecordSettings,
} from './call-record.ts'
import { PlainRequest, RefusedMessage, type RefusedRequest } from './request-record.ts'
import { resultTypeOf } from './result-type.ts'

/** What telling takes. */
export interface ObserveSettings extends RecordSettings {
  readonly log: Logger
}

/** What it throws, or rejects with, is logged, and nobody waits for it. */
export type Observer = (record: CallRecord) => void | Promise<void>

/** The service of the slot `tracer`: puts each Call into a context that follows whatever it does. */
export interface CallTracer {
  /** Runs `answer` with the call, outside of every `around` of its way, and gives what it gives. */
  run(start: CallStart, answer: (call: Call) => Promise<object>): Promise<object>
  /** Headers for a request that a handler makes with `ctx.fetch`; unless it set one of them. */
  headersFor(call: Call): Readonly<Record<string, string>>
  /** The trace that the call's span is in, for records and the log. Default: what the request names. */
  traceIdOf?(call: Call): string | undefined
}

/** What the slot holds where nobody fills it. */
export const NO_TRACER: CallTracer = { run: (start, answer) => answer(start.call), headersFor: () => ({}) }

/** What came of a call. Who was refused was refused, though nobody waits to be told; what fails when it is cancelled has no other cause. */
function endOf(call: Call, result: object | undefined, thrown: unknown): readonly [Outcome, HostError?] {
  const error = HostError.is(thrown) ? thrown : undefined
  if (error && !(error.kind === 'internal' && call.cancelled)) return ['error', error]
  if (call.cancelled) return ['cancelled']
  if (!result) return ['error']
  if ('isError' in result && result.isError === true) return ['tool_error']
  return [resultTypeOf(result)?.name === 'input_required' ? 'input_required' : 'ok']
}

function tellAll(observers: readonly Observer[], record: CallRecord, log: Logger): void {
  const failed = (err: unknown) => log.error({ err, ...blamed(err), method: record.method }, 'an observer failed')
  for (const observer of observers) {
    try {
      const told = observer(record)
      if (told instanceof Promise) told.catch(failed)
    } catch (err) {
      failed(err)
    }
  }
}

/** On the headers of an HTTP request whose messages have records of their own: they have nothing else of what brought them. */
const CALLED = Symbol('became calls')

interface Headers extends IncomingHttpHeaders {
  [CALLED]?: true
}

/** What came of an HTTP request that became no Call. */
function outcomeOfRequest({ state, res }: HostContext): Outcome {
  if (state.refusal) return 'refused'
  // A stream ends with whoever reads it.
  const isOver = res.writableFinished || String(res.getHeader('content-type')).startsWith('text/event-stream')
  if (!isOver) return 'cancelled'
  return res.statusCode < 400 ? 'ok' : 'error'
}

/** Tells the observers of a route, or those that are on everywhere, of HTTP requests that became no Call. */
export function createRequestWatch(
  notes: readonly Note<Observer>[],
  { log, ...settings }: ObserveSettings,
): (ctx: HostContext) => (decided: Promise<unknown>) => void {
  const everywhere = notes.filter(({ instance }) => instance.general).map(({ value }) => value)
  function tell(ctx: HostContext, began: number) {
    const { req, res, state, ip } = ctx
    if ((req.headers as Headers)[CALLED]) return
    const { refusal: error, route, user } = state
    const milliseconds = performance.now() - began
    const length = Number(res.getHeader('content-length'))
    const facts = {
      outcome: outcomeOfRequest(ctx),
      error,
      at: Date.now() - milliseconds,
      milliseconds,
      bytesOut: Number.isSafeInteger(length) ? length : undefined,
      headers: req.headers,
      user,
      route: route?.path,
      ip,
      sessionId: sessionOf(ctx),
      isWhole: req.complete,
      http: { verb: VERBS.has(ctx.method) ? ctx.method : OTHER, status: res.statusCode },
    }
    tellAll(route ? notesFor(notes, route) : everywhere, new PlainRequest(facts, settings), log)
  }
  return ctx => {
    const began = performance.now()
    return decided => ctx.res.on('close', () => whenDecided(ctx, decided, () => tell(ctx, began)))
  }
}

/** How long a record waits for what the host decides of a request whose client has left, milliseconds. */
const DECIDED_WITHIN = 60_000

/** A client that leaves early takes no record with it, of a refusal that comes later least of all. */
function whenDecided({ req, res }: HostContext, decided: Promise<unknown>, tell: () => void): void {
  if ((req.headers as Headers)[CALLED]) return
  if (res.writableFinished) {
    tell()
    return
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise(resolve => {
    timer = setTimeout(resolve, DECIDED_WITHIN).unref()
  })
  void Promise.allSettled([Promise.race([decided, late])]).then(() => {
    clearTimeout(timer)
    tell()
  })
}

/** Tells the observers of a route of requests that were refused before they were Calls, where no HTTP request says it of one alone. */
export function createRefusalWatch(
  notes: readonly Note<Observer>[],
  { log, ...settings }: ObserveSettings,
): (refused: RefusedRequest & { readonly route: Route }) => void {
  return refused => {
    const observers = notesFor(notes, refused.route)
    if (observers.length === 0) return
    const headers: Headers = refused.headers
    headers[CALLED] = true
    tellAll(observers, new RefusedMessage(refused, settings), log)
  }
}

/** The session that a request was let into: of one that was refused anybody may have named any. */
function sessionOf({ req, res, state }: HostContext): string | undefined {
  const id = req.headers['mcp-session-id']
  return typeof id === 'string' && state.refusal === undefined && res.statusCode < 400 ? id : undefined
}

const VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])

/** Tells of calls once their transports have written the answers, whose length is known then; of all of one turn together. */
function createTelling(observers: readonly Observer[], log: Logger): (record: CallRecord) => void {
  let waiting: CallRecord[] = []

  function tellAllWaiting() {
    const told = waiting
    waiting = []
    for (const record of told) tellAll(observers, record, log)
  }

  return record => {
    if (waiting.push(record) === 1) setImmediate(tellAllWaiting)
  }
}

/** Answers as `answer` does, within the tracer, and tells the observers. */
export function observed(
  answer: (call: Call) => Promise<object>,
  { observers, tracer }: { readonly observers: readonly Observer[]; readonly tracer: CallTracer },
  { log, ...given }: ObserveSettings,
): (call: Call) => Promise<object> {
  const settings = { ...given, tracer }
  const tell = createTelling(observers, log)
  return async call => {
    const headers: Headers = call.headers
    headers[CALLED] = true
    const record = new ObservedCall(call, watchCall(call), settings)
    const begun = performance.now()
    let result: object | undefined
    let thrown: unknown
    try {
      result = await tracer.run(record, answer)
      return result
    } catch (error) {
      thrown = error
      throw error
    } finally {
      const milliseconds = performance.now() - begun
      const [outcome, error] = endOf(call, result, thrown)
      record.end(outcome, error, milliseconds)
      tell(record)
    }
  }
}
