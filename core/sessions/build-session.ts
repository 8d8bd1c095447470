// Makes a session of this node, from the request that opens it or from its record: `configureSession` runs, with a signal
// that aborts when the session is over. For registry.ts.
import type { Offer, RequestFacts } from '../mcp/call.ts'
import { Session, type SessionFacts } from './session.ts'

/** The signal of a session's life, made only for those who look at it. */
function createLife() {
  let controller: AbortController | undefined
  let session: Session | undefined
  const abort = () => controller?.abort(new Error('the session is over'))
  return {
    signal(): AbortSignal {
      if (!controller) session?.onDispose(abort)
      controller ??= new AbortController()
      return controller.signal
    },
    endWith(begun: Session) {
      session = begun
      if (controller) session.onDispose(abort)
    },
  }
}

export async function buildSession(
  makeOffer: (facts: RequestFacts) => Offer | Promise<Offer>,
  facts: RequestFacts,
  session: Omit<SessionFacts, 'offer'>,
): Promise<Session> {
  const life = createLife()
  const offer = await makeOffer({ ...facts, sessionId: session.id, signal: life.signal })
  const built = new Session({ ...session, offer })
  life.endWith(built)
  return built
}
