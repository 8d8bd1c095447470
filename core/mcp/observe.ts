// Tells plugins of each request when it is over: of every Call, outermost of its way (core/mcp/dispatch.ts), and of HTTP
// requests that became none (core/kernel/pipeline.ts), such as those that were refused before.
import type { IncomingHttpHeaders } from 'node:http'
import { blamed } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import type { HostContext } from '../kernel/endpoint.ts'
import type { Logger } from '../kernel/log.ts'
import { type Note, notesFor } from '../kernel/set-up.ts'
import type { Call } from './call.ts'
import { watchCall } from './call-notes.ts'
import {
  type CallRecord,
  type CallStart,
  ObservedCall,
  OTHER,
  type Outcome,
  PlainRequest,
  type RecordSettings,
} from './call-record.ts'

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
}

/** What the slot holds where nobody fills it. */
export const NO_TRACER: CallTracer = { run: (start, answer) => answer(start.call), headersFor: () => ({}) }

function outcomeOf(call: Call, result: object | undefined): Outcome {
  if (call.signal.aborted) return 'cancelled'
  if (!result) return 'error'
  return 'isError' in result && result.isError === true ? 'tool_error' : 'ok'
}

async function tellOne(observer: Observer, record: CallRecord, log: Logger) {
  try {
    await observer(record)
  } catch (err) {
    log.error({ err, ...blamed(err), method: record.method }, 'an observer failed')
  }
}

function tellAll(observers: readonly Observer[], record: CallRecord, log: Logger): void {
  for (const observer of observers) void tellOne(observer, record, log)
}

/** HTTP requests that became Calls, by their headers: a Call has nothing else of the request that brought it. */
const called = new WeakSet<Readonly<IncomingHttpHeaders>>()

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
): (ctx: HostContext) => void {
  const everywhere = notes.filter(({ instance }) => instance.general).map(({ value }) => value)
  function tell(ctx: HostContext, began: number) {
    const { req, res, state, ip } = ctx
    if (called.has(req.headers)) return
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
      http: { verb: VERBS.has(ctx.method) ? ctx.method : OTHER, status: res.statusCode },
    }
    tellAll(route ? notesFor(notes, route) : everywhere, new PlainRequest(facts, settings), log)
  }
  return ctx => {
    const began = performance.now()
    ctx.res.once('close', () => tell(ctx, began))
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
  settings: ObserveSettings,
): (call: Call) => Promise<object> {
  const tell = createTelling(observers, settings.log)
  return async call => {
    called.add(call.headers)
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
      const outcome = outcomeOf(call, result)
      record.end(outcome, outcome === 'error' && HostError.is(thrown) ? thrown : undefined, milliseconds)
      tell(record)
    }
  }
}
