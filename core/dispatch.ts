// A Call through every `around` of its route to its answer; and the one place where a failed handler is logged.
import type { Call } from './call.ts'
import { HostError } from './errors.ts'
import type { CompiledRoute } from './http/routes.ts'
import type { Logger } from './log.ts'
import type { MethodTable } from './methods/index.ts'
import { FAILURE } from './methods/tools.ts'
import { notesFor, type PluginNotes } from './plugin-host.ts'

type Wrap = PluginNotes['around'][number]['value']

/** Calls `wraps[index]`, whose `next` calls the one behind it. */
function wrapped(
  wraps: readonly Wrap[],
  call: Call,
  innermost: (call: Call) => Promise<object>,
  index = 0,
): Promise<object> {
  const wrap = wraps[index]
  return wrap ? wrap(call, () => wrapped(wraps, call, innermost, index + 1)) : innermost(call)
}

export function createDispatch(
  routes: readonly CompiledRoute[],
  notes: PluginNotes,
  methods: MethodTable,
  log: Logger,
): (call: Call) => Promise<object> {
  const wraps = new Map(routes.map(route => [route as object, notesFor(notes.around, route)]))

  function logFailure(call: Call, err: unknown) {
    const name = call.params['name'] ?? call.params['uri']
    const fields = { err, method: call.method, name, route: call.session.route.path }
    // Ending with an error is what a handler is expected to do once its client is gone.
    if (call.signal.aborted) log.debug(fields, 'a handler ended after its call was cancelled')
    else log.error(fields, 'a handler failed')
  }

  async function answer(call: Call): Promise<object> {
    const result = await methods.answer(call)
    if (FAILURE in result) logFailure(call, result[FAILURE])
    return result
  }

  return async call => {
    try {
      const around = wraps.get(call.session.route) ?? []
      return around.length === 0 ? await answer(call) : await wrapped(around, call, answer)
    } catch (error) {
      if (HostError.is(error)) throw error
      logFailure(call, error)
      throw new HostError('internal', { cause: error }).within200()
    }
  }
}
