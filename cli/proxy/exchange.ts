// One line of the client on its way: the requests in it that are not answered yet, and whether somebody still waits.
import type { Id, Outgoing, Request } from './messages.ts'

export interface Exchange {
  readonly out: Outgoing
  /** Not answered yet. */
  readonly open: Map<Id, Request>
  /** The revision that its requests name for themselves; undefined: one with a handshake. */
  readonly version: string | undefined
  /** Aborts where the client no longer wants the answer. */
  readonly signal: AbortSignal
  /** The client no longer wants the answer to one of its requests. */
  drop(id: Id, reason: string): void
}

export function createExchange(out: Outgoing, version: string | undefined): Exchange {
  const open = new Map(out.requests.map(request => [request.id, request]))
  const end = new AbortController()
  return {
    out,
    open,
    version,
    signal: end.signal,
    drop(id, reason) {
      if (open.delete(id) && open.size === 0) end.abort(new Error(reason))
    },
  }
}

/** Methods that change nothing: sent again where nobody knows whether they arrived. */
const HARMLESS =
  /^(?:initialize|ping|server\/discover|completion\/complete|prompts\/(?:list|get)|tools\/list|resources\/(?:read|list|templates\/list|subscribe|unsubscribe)|logging\/setLevel)$/

/** True where it may be sent twice. */
export const isHarmless = ({ out }: Exchange): boolean =>
  out.requests.length === 0 ? out.notification !== undefined : out.requests.every(({ method }) => HARMLESS.test(method))
