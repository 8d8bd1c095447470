// One connection to a session's stream: it hears of what its own token may read. A session's tokens may differ, and what
// one of them subscribed to is no secret shared with the others; decided when a change is sent, also one that was kept.

import type { EventStream } from '../http/sse.ts'
import type { User } from '../kernel/user.ts'
import type { Offer } from '../mcp/call.ts'
import { mayHearNow } from '../mcp/methods/resources.ts'
import { updatedUri } from './change-feed.ts'

/** The stream, past which go the updates of resources that `user` may not read; `offer`: with its token. */
export function heardBy(stream: EventStream, offer: Offer, user: User | undefined): EventStream {
  return {
    ...stream,
    get closed() {
      return stream.closed
    },
    send(message, id) {
      const uri = updatedUri(message)
      if (uri !== undefined && !mayHearNow(offer, user, uri)) return !stream.closed
      return stream.send(message, id)
    },
  }
}
