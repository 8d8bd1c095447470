// The host's side of one call: runs the context methods that the handler calls.
import type { CallContext } from '../../core/index.ts'
import type { Ask, IsolatedCall, NotifyMethod, ToProcess } from './messages.ts'
import { type PackedError, packError, unpackError } from './pack-error.ts'

/** How long the error of a plugin's member can take to the handler and back as its response, milliseconds. */
const HELD_FOR = 250

interface ServedCall {
  tell(what: NotifyMethod, args: readonly unknown[]): void
  ask(asks: readonly Ask[]): void
  errorOf(packed: PackedError): unknown
}

function notify(ctx: CallContext, what: NotifyMethod, [one, two, three]: readonly never[]): void {
  if (what === 'progress') ctx.progress(one as never, two, three)
  else if (what === 'log') ctx.log(one as never, two as never, three)
  else if (what === 'disconnect') ctx.disconnect(one)
  else if (what === 'resourceUpdated') ctx.host.resourceUpdated(one as never)
}

async function request({ ctx, call, members }: IsolatedCall, { what, args }: Ask): Promise<unknown> {
  const [one, two] = args as [never, never]
  if (what === 'elicit') return ctx.elicit(one, two)
  if (what === 'sample') return ctx.sample(one, two)
  if (what === 'roots') return ctx.roots(one)
  if (what === 'ping') return ctx.ping()
  if (what === 'settled') return ctx.host.settled()
  const member = members.functions.includes(what) ? (Reflect.get(ctx, what) as unknown) : undefined
  if (typeof member !== 'function') throw new TypeError(`ctx.${what} does not exist`)
  const release = call.hold()
  try {
    return await member(...args)
  } finally {
    setTimeout(release, HELD_FOR).unref()
  }
}

export function serveCall(isolated: IsolatedCall, send: (message: ToProcess) => void): ServedCall {
  const failures = new Map<number, unknown>()

  async function answer(ask: Ask) {
    const { n } = ask
    try {
      send({ kind: 'answer', n, value: await request(isolated, ask) })
    } catch (thrown) {
      failures.set(n, thrown)
      send({ kind: 'refusal', n, error: { ...packError(thrown), ask: n } })
    }
  }

  return {
    tell: (what, args) => notify(isolated.ctx, what, args as never[]),
    ask: asks => void asks.map(answer),
    errorOf: packed =>
      packed.ask !== undefined && failures.has(packed.ask) ? failures.get(packed.ask) : unpackError(packed),
  }
}
