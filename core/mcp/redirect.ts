// A Call with other params in the place of one, as plugins ask for with `host.redirect`: from the first step of its way on
// there is only that Call. For dispatch.ts.
import { type Call, withParams } from './call.ts'
import { shareNotes } from './call-notes.ts'

/** Params in the place of a Call's; undefined: it stays as it is. */
type Redirect = (call: Call) => Readonly<Record<string, unknown>> | undefined
type Answer = (call: Call) => Promise<object>

/** Answers the Call that the first of these makes of one. */
export function redirected(answer: Answer, redirects: readonly Redirect[]): Answer {
  if (redirects.length === 0) return answer
  return async call => {
    for (const redirect of redirects) {
      const params = redirect(call)
      if (!params) continue
      const other = withParams(call, { ...params })
      const answered = answer(other)
      // The transport writes the answer to the Call that it made.
      shareNotes(call, other)
      return answered
    }
    return answer(call)
  }
}
