// Runs a Call through every `onCall` hook of its route, notifies observers, and encodes the response.

import compose from 'koa-compose'
import { attributeError, attributionOf } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import { getOrCreate } from '../http/get-or-create.ts'
import { requestIdIn } from '../http/request-target.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import { registeredOn } from '../kernel/set-up.ts'
import { type Call, withParams } from './calls/call.ts'
import { type CallStart, type RequestRecord, traceIdOf } from './calls/call-record.ts'
import type { HandlerSettings } from './calls/context.ts'
import { type CallTracer, type CallWatch, createCallWatch, NO_TRACER, type ObserveSettings } from './calls/observe.ts'
import type { McpRegistrations } from './mcp-plugin-host.ts'
import type { MethodTable } from './methods/index.ts'
import { type EncodedResponse, resultTypeOf, SerializedResponse, SerializedResult } from './wire/message.ts'
import { META } from './wire/protocol.ts'

type Handle = (call: Call) => Promise<object>

export const resultError = (method: string, result: unknown): TypeError =>
  new TypeError(`the result of ${method} must be an object; found ${result == null ? result : `a ${typeof result}`}`)

const FIX = 'correct the handler; clients see a generic message, unless it throws a ToolError'

export const createCallFailureLog =
  (log: Logger, tracerOn: (route: Route) => CallTracer) =>
  (call: Call, err: unknown): void => {
    const name = call.params['name'] ?? call.params['uri']
    const whose = attributionOf(err)
    const { route } = call.offer
    const ids = { requestId: requestIdIn(call.headers), traceId: traceIdOf(call, tracerOn(route)) }
    const fields = { err, ...whose, method: call.method, name, route: route.path, ...ids }
    // Handlers often fail after the client has left.
    if (call.cancelled) log.debug(fields, 'a handler ended after its call was cancelled')
    else if (whose.plugin !== undefined) log.error({ code: 'MH1602', ...fields }, 'a plugin failed')
    else log.error({ code: 'MH1601', ...fields, fix: FIX }, 'a handler failed')
  }

export function createDispatch(
  registrations: Pick<McpRegistrations, 'onCall' | 'onFinish' | 'redirects'>,
  methods: MethodTable,
  settings: ObserveSettings & Pick<HandlerSettings, 'logFailure'> & { tracerOn(route: Route): CallTracer },
): Handle {
  async function runMethod(call: Call): Promise<object> {
    try {
      const result = await methods.answer(call)
      if (typeof result !== 'object' || result === null) throw resultError(call.method, result)
      return result
    } catch (error) {
      // Plugins with `onCall` are not blamed, because they only pass the error on.
      attributeError(error, undefined)
      throw error
    }
  }

  function createChain(onCall: McpRegistrations['onCall'][number]['value'][], watch?: CallWatch) {
    // Koa's composer rejects a second `next()`.
    const wrapped = compose<Call>(onCall) as unknown as (call: Call, innermost: Handle) => Promise<object>
    // Records end here, which saves an async function per call.
    return async (call: Call, record?: RequestRecord): Promise<object> => {
      let result: object | undefined
      let failure: HostError | undefined
      try {
        // Plugins rely on the types of params.
        const method = methods.check(call)
        result = onCall.length === 0 ? await methods.answer(call, method) : await wrapped(call, runMethod)
        if (typeof result !== 'object' || result === null) throw resultError(call.method, result)
        resultTypeOf(result)?.check?.(call)
        return result
      } catch (error) {
        if (!HostError.is(error)) settings.logFailure(call, error)
        failure = HostError.is(error) ? error : new HostError('internal', { cause: error }).withStatus200()
        throw failure
      } finally {
        if (record) watch?.end(call, record, result, failure)
      }
    }
  }

  function handlerOn(route: Route): Handle {
    const observers = registeredOn(registrations.onFinish, route)
    const tracer = settings.tracerOn(route)
    const isObserved = observers.length > 0 || tracer !== NO_TRACER
    const watch = isObserved ? createCallWatch(observers, tracer, settings) : undefined
    const through = createChain(registeredOn(registrations.onCall, route), watch)
    const runStart = (start: CallStart) => through(start.call, start as RequestRecord)
    const observed = (call: Call) => tracer.run(watch?.start(call) as CallStart, runStart)
    return redirected(watch ? observed : through, registeredOn(registrations.redirects, route))
  }

  const handlers = new Map<Route, Handle>()
  return call => getOrCreate(handlers, call.offer.route, handlerOn)(call)
}

function redirected(run: Handle, redirects: ReadonlyArray<McpRegistrations['redirects'][number]['value']>): Handle {
  if (redirects.length === 0) return run
  return async call => {
    for (const redirect of redirects) {
      const params = redirect(call)
      if (params) return run(withParams(call, { ...params }))
    }
    return run(call)
  }
}

/** Encodes a response. Throws `internal` for a result that JSON cannot represent. */
export function encodeResponse({ log }: { readonly log: Logger }, call: Call, result: object): EncodedResponse {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":`
  try {
    const response =
      result instanceof SerializedResult
        ? new SerializedResponse(head, result)
        : `${head}${call.modern ? encodeModern(call, result) : JSON.stringify(result)}}`
    call.notes.response = response
    return response
  } catch (err) {
    log.error(
      { code: 'MH1603', err, method: call.method, route: call.offer.route.path },
      'a result cannot be written as JSON',
    )
    throw new HostError('internal', { cause: err }).withStatus200()
  }
}

/** Adds required fields of 2026-07-28 (basic, "ResultType"). Concatenation is a third faster than an object. */
function encodeModern(call: Call, result: object): string {
  const isPlain = !('_meta' in result || 'resultType' in result || 'toJSON' in result || Array.isArray(result))
  if (!isPlain || resultTypeOf(result)) return JSON.stringify(modernResult(call, result))
  const json = JSON.stringify(result)
  // Objects such as `new String` do not become JSON objects.
  if (json[0] !== '{') return JSON.stringify(modernResult(call, result))
  const members = json.slice(1, -1)
  return `{"resultType":"complete",${members}${members === '' ? '' : ','}"_meta":${call.view.metaJson}}`
}

function modernResult({ view }: Call, result: object): object {
  const { _meta, resultType: _, ...rest } = result as { _meta?: object; resultType?: string }
  return {
    resultType: resultTypeOf(result)?.name ?? 'complete',
    ...rest,
    _meta: { ..._meta, [META.serverInfo]: view.serverInfo },
  }
}
