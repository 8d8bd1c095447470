// Notifies observers of finished Calls and of HTTP requests without a Call.
import { attributionOf } from '../../http/describe-thrown.ts'
import type { HostError } from '../../http/errors.ts'
import { whenClosed } from '../../http/sse.ts'
import type { HostContext, Timeline } from '../../kernel/endpoint.ts'
import type { Logger } from '../../kernel/log.ts'
import type { RequestObserver } from '../../kernel/pipeline.ts'
import { type Registration, registeredOn } from '../../kernel/set-up.ts'
import { resultTypeOf } from '../wire/message.ts'
import type { Call } from './call.ts'
import {
  byteCount,
  type CallRecord,
  type CallStart,
  OTHER,
  type Outcome,
  type RecordSettings,
  type RefusedRequest,
  RequestRecord,
} from './call-record.ts'

export interface ObserveSettings extends RecordSettings {
  readonly log: Logger
}

/** The host does not await the promise. Errors are logged. */
export interface Observer {
  (record: CallRecord): void | Promise<void>
  /** For built-in plugins: measures the stages of the next request. Undefined: not this one. */
  readonly startTimeline?: () => Timeline | undefined
}

/** The slot `tracer`: runs each Call in a context for its whole duration. */
export interface CallTracer {
  run(start: CallStart, answer: (start: CallStart) => Promise<object>): Promise<object>
  /** Returns headers for `ctx.fetch`. The handler's own headers have priority. */
  headersFor(call: Call): Readonly<Record<string, string>>
  /** The trace for records and the log. Default: the trace of the request. */
  traceIdOf?(call: Call): string | undefined
}

export const NO_TRACER: CallTracer = { run: (start, answer) => answer(start), headersFor: () => ({}) }

/** Refusals count even for cancelled calls. Internal errors of cancelled calls result from the cancellation. */
function outcomeOf(call: Call, result: object | undefined, error: HostError | undefined): Outcome {
  if (call.cancelled && (!error || error.kind === 'internal')) return 'cancelled'
  if (!result || error) return 'error'
  if ('isError' in result && result.isError === true) return 'tool_error'
  return resultTypeOf(result)?.name === 'input_required' ? 'input_required' : 'ok'
}

function notifyAll(observers: readonly Observer[], record: CallRecord, log: Logger): void {
  for (const observer of observers) {
    try {
      const result = observer(record)
      if (result instanceof Promise) result.catch(err => logFailure(err, record, log))
    } catch (err) {
      logFailure(err, record, log)
    }
  }
}

function logFailure(err: unknown, { method }: CallRecord, log: Logger): void {
  log.error({ code: 'MH1607', err, ...attributionOf(err), method }, 'an observer failed')
}

function outcomeOfRequest({ state, req, res }: HostContext): Outcome {
  // The client closed the connection during its upload.
  if (state.refusal?.kind === 'parseError' && !req.complete) return 'cancelled'
  if (state.refusal) return 'refused'
  // The client ends an event stream.
  const isOver = res.writableFinished || String(res.getHeader('content-type')).startsWith('text/event-stream')
  if (!isOver) return 'cancelled'
  return res.statusCode < 400 ? 'ok' : 'error'
}

/** Maximum time of steps after the client disconnects, milliseconds. Then they count as hung. */
const HUNG = 60_000

const VERBS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])

export function createRequestWatch(
  registered: readonly Registration<Observer>[],
  { log, ...settings }: ObserveSettings,
): RequestObserver {
  const { clock } = settings
  const everywhere = registered.filter(({ instance }) => instance.general).map(({ value }) => value)

  function notify(ctx: HostContext, began: number, milliseconds: number) {
    const { req, res, state, ip } = ctx
    state.timeline?.end()
    const { refusal, route, user, timeline } = state
    const outcome = outcomeOfRequest(ctx)
    const error = outcome === 'refused' ? refusal : undefined
    const { headers } = req
    const id = headers['mcp-session-id']
    // A refused request can contain any session id.
    const sessionId = typeof id === 'string' && error === undefined && res.statusCode < 400 ? id : undefined
    const offer = { route, ip, sessionId }
    const none = { method: undefined, client: undefined, revision: undefined, session: undefined }
    const recorded = {
      outcome,
      error,
      began,
      milliseconds,
      bytesOut: byteCount(res.getHeader('content-length')),
      http: { verb: VERBS.has(ctx.method) ? ctx.method : OTHER, status: res.statusCode },
      isCut: !req.complete,
    }
    const record = new RequestRecord(settings, { headers, user, offer, timeline, ...none }, recorded)
    notifyAll(route ? registeredOn(registered, route) : everywhere, record, log)
  }

  const starts = registered.flatMap(({ value }) => value.startTimeline ?? [])

  return {
    start(ctx) {
      for (const start of starts) ctx.state.timeline ??= start()
      return clock.monotonic()
    },
    follow(ctx, began, decided) {
      const { state } = ctx
      // The response can be closed already if other middleware ran first.
      whenClosed(ctx.res, () => {
        if (state.hasRecords) return
        const milliseconds = clock.monotonic() - began
        const finish = () => {
          clock.clear(timer)
          if (state.hasRecords) return
          state.hasRecords = true
          notify(ctx, began, milliseconds)
        }
        // Steps can still end in a Call after the client has left, or hang.
        const timer = clock.setTimeout(finish, HUNG).unref()
        decided.then(finish, finish)
      })
    },
  }
}

export function createRefusalWatch(
  registered: readonly Registration<Observer>[],
  { log, ...settings }: ObserveSettings,
): (refused: RefusedRequest) => void {
  return refused => {
    const request = { ...refused, offer: refused, session: refused }
    const record = new RequestRecord(settings, request, { outcome: 'refused', error: refused.error })
    notifyAll(registeredOn(registered, refused.route), record, log)
  }
}

export type CallWatch = ReturnType<typeof createCallWatch>

export function createCallWatch(observers: readonly Observer[], tracer: CallTracer, settings: ObserveSettings) {
  const traced = { ...settings, tracer }
  const none = {}
  return {
    start: (call: Call) => new RequestRecord(traced, call, none, call),
    /** Notifies the observers after the response was written. */
    end(call: Call, record: RequestRecord, result: object | undefined, error: HostError | undefined): void {
      if (error) call.notes.timeline?.end()
      else call.notes.timeline?.mark('respond')
      record.milliseconds = settings.clock.monotonic() - record.began
      record.outcome = outcomeOf(call, result, error)
      if (record.outcome === 'error') record.error = error
      // `setImmediate` would keep the objects of all calls of an event loop phase: each scavenge would copy them.
      process.nextTick(notifyAll, observers, record, settings.log)
    },
  }
}
