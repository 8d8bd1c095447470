// One call as the host has it while its handler runs in a thread: what the handler tells and asks is done here, by the
// call's own `ctx`.
import type { CallContext } from '../mcp/define.ts'
import type { IsolatedCall } from '../mcp/isolation.ts'
import type { AskMessage, CallData, FromThread, Told, ToThread } from './messages.ts'
import { type PackedError, packError, unpackError } from './pack-error.ts'

/** How long a rejected `upstreamToken` may still become the call's answer, milliseconds: it crosses to the thread and back. */
const HELD_FOR = 250

export interface ServedCall {
  readonly id: number
  tell(message: Extract<FromThread, { kind: 'tell' }>): void
  ask(message: Extract<FromThread, { kind: 'ask' }>): void
  /** What the handler threw: where it is what an ask was answered with, the very same. */
  thrownBy(error: PackedError): unknown
}

export const dataOf = ({ ctx, headers }: IsolatedCall, fetchTimeout: number): CallData => {
  const { user, session, route, client, meta } = ctx
  // Spread: views of other threads' objects are none of theirs.
  return { user, session, route, headers: { ...ctx.headers }, client, meta, fetchTimeout, fetchHeaders: headers }
}

function tellBy(ctx: CallContext, what: Told, args: readonly never[]): void {
  const [one, two, three] = args as [never, never, never]
  if (what === 'progress') ctx.progress(one, two, three)
  else if (what === 'log') ctx.log(one, two, three)
  else if (what === 'disconnect') ctx.disconnect(one)
  else if (what === 'resourceUpdated') ctx.host.resourceUpdated(one)
}

async function askBy({ ctx, call }: IsolatedCall, { what, args }: AskMessage): Promise<unknown> {
  const [one, two] = args as [never, never]
  if (what === 'elicit') return ctx.elicit(one, two)
  if (what === 'sample') return ctx.sample(one, two)
  if (what === 'roots') return ctx.roots(one)
  if (what === 'ping') return ctx.ping()
  if (what === 'settled') return ctx.host.settled()
  if (what !== 'upstreamToken') throw new TypeError(`nothing is called ctx.${what}`)
  const release = call.hold()
  try {
    return await ctx.upstreamToken(one)
  } finally {
    setTimeout(release, HELD_FOR).unref()
  }
}

export function serveCall(id: number, isolated: IsolatedCall, post: (message: ToThread) => void): ServedCall {
  /** Why asks failed, by their number. */
  const failures = new Map<number, unknown>()

  function refuse(n: number, thrown: unknown) {
    failures.set(n, thrown)
    post({ kind: 'refusal', id, n, error: { ...packError(thrown), ask: n } })
  }

  return {
    id,
    tell({ what, args }) {
      tellBy(isolated.ctx, what, args as never[])
    },
    ask({ asks }) {
      for (const asked of asks) {
        askBy(isolated, asked).then(
          value => post({ kind: 'answer', id, n: asked.n, value }),
          thrown => refuse(asked.n, thrown),
        )
      }
    },
    thrownBy(error) {
      return error.ask !== undefined && failures.has(error.ask) ? failures.get(error.ask) : unpackError(error)
    },
  }
}
