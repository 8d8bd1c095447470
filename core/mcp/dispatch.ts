// A Call through every `around` of its route to its answer, watched by those who observe; and the one place where a failed
// handler is logged.
import compose from 'koa-compose'
import { blame, blamed } from '../http/describe-thrown.ts'
import { HostError } from '../http/errors.ts'
import { requestIdIn } from '../http/request-target.ts'
import type { Logger } from '../kernel/log.ts'
import type { Route } from '../kernel/route.ts'
import { notesFor } from '../kernel/set-up.ts'
import type { AuthorNotes } from './author-host.ts'
import type { Call } from './call.ts'
import { traceIdOf } from './call-record.ts'
import { demandObject } from './check-added.ts'
import { checkResultType } from './extension.ts'
import type { MethodTable } from './methods/index.ts'
import { FAILURE } from './methods/tools.ts'
import { type CallTracer, NO_TRACER, type ObserveSettings, observed } from './observe.ts'
import { redirected } from './redirect.ts'
import { createHandmadeWarning } from './result-type.ts'

type Answer = (call: Call) => Promise<object>

/** Its text is hidden from clients. */
const TELL_MORE = 'clients read only that it failed; what a ToolError says they read, too'

/** Logs what a handler or a plugin threw and no client may see. */
function createFailureLog(log: Logger, tracerOn: (route: Route) => CallTracer) {
  return (call: Call, err: unknown): void => {
    const name = call.params['name'] ?? call.params['uri']
    const whose = blamed(err)
    const { route } = call.offer
    const ids = { requestId: requestIdIn(call.headers), traceId: traceIdOf(call, tracerOn(route)) }
    const fields = { err, ...whose, method: call.method, name, route: route.path, ...ids }
    // Ending with an error is what a handler is expected to do once its client is gone.
    if (call.cancelled) log.debug(fields, 'a handler ended after its call was cancelled')
    else if (whose.plugin !== undefined) log.error(fields, 'a plugin failed')
    else log.error({ ...fields, fix: TELL_MORE }, 'a handler failed')
  }
}

export function createDispatch(
  notes: Pick<AuthorNotes, 'around' | 'observers' | 'redirects'>,
  methods: MethodTable,
  settings: ObserveSettings & { readonly tracerOn: (route: Route) => CallTracer },
): Answer {
  const { log } = settings
  const logFailure = createFailureLog(log, settings.tracerOn)
  const warnOfHandmade = createHandmadeWarning(log)

  async function answer(call: Call): Promise<object> {
    try {
      const result = await methods.answer(call)
      demandObject(call.method, result)
      if (FAILURE in result) logFailure(call, result[FAILURE])
      return result
    } catch (error) {
      // What plugins around it only pass on is not theirs.
      blame(error, undefined)
      throw error
    }
  }

  /** Through these to the answer; a failure that clients may not see becomes an internal error. */
  function answerThrough(around: AuthorNotes['around'][number]['value'][]): Answer {
    // Koa's own composer: a second `next()` of one of them is an error.
    const wrapped = compose<Call>(around) as unknown as (call: Call, innermost: Answer) => Promise<object>
    const inner = around.length === 0 ? answer : (call: Call) => wrapped(call, answer)
    return async call => {
      try {
        // Before plugins: they too take params for what they should be.
        methods.check(call)
        const result = await inner(call)
        demandObject(call.method, result)
        checkResultType(call, result)
        if (call.modern) warnOfHandmade(call, result)
        return result
      } catch (error) {
        if (HostError.is(error)) throw error
        logFailure(call, error)
        throw new HostError('internal', { cause: error }).within200()
      }
    }
  }

  function wayOn(route: Route): Answer {
    const way = answerThrough(notesFor(notes.around, route))
    const observers = notesFor(notes.observers, route)
    const tracer = settings.tracerOn(route)
    const watched =
      observers.length === 0 && tracer === NO_TRACER ? way : observed(way, { observers, tracer }, settings)
    return redirected(watched, notesFor(notes.redirects, route))
  }

  /** Made with the first call: by then both phases of the plugins are over. */
  const ways = new Map<Route, Answer>()
  return call => {
    const { route } = call.offer
    let way = ways.get(route)
    if (!way) {
      way = wayOn(route)
      ways.set(route, way)
    }
    return way(call)
  }
}
