// A Call through every `around` of its route to its answer; and the one place where a failed handler is logged.

import { HostError } from '../kernel/errors.ts'
import type { Logger } from '../kernel/log.ts'
import { notesFor } from '../kernel/set-up.ts'
import type { AuthorNotes } from './author-host.ts'
import type { Call } from './call.ts'
import type { MethodTable } from './methods/index.ts'
import { FAILURE } from './methods/tools.ts'
import type { CompiledRoute } from './routes.ts'

type Wrap = AuthorNotes['around'][number]['value']

/** Calls the outermost, whose `next` calls the one behind it: once, as in Koa, for behind the last is the handler. */
function wrapped(wraps: readonly Wrap[], call: Call, innermost: (call: Call) => Promise<object>): Promise<object> {
  let reached = -1
  async function pass(index: number): Promise<object> {
    if (index <= reached) throw new Error('an `around` called next() twice; keep the promise of the first call instead')
    reached = index
    const wrap = wraps[index]
    return wrap ? wrap(call, () => pass(index + 1)) : innermost(call)
  }
  return pass(0)
}

export function createDispatch(
  routes: readonly CompiledRoute[],
  notes: Pick<AuthorNotes, 'around'>,
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
      // Before plugins: they too take params for what they should be.
      methods.check(call)
      const around = wraps.get(call.session.route) ?? []
      return around.length === 0 ? await answer(call) : await wrapped(around, call, answer)
    } catch (error) {
      if (HostError.is(error)) throw error
      logFailure(call, error)
      throw new HostError('internal', { cause: error }).within200()
    }
  }
}
