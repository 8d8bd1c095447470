// Filters the stream of one connection: resource updates reach it only if its own token may read the resource. Tokens of a session
// can differ. The check runs when a change is sent, also for stored changes.

import type { EventStream } from '../http/sse.ts'
import type { User } from '../kernel/user.ts'
import type { Offer } from '../mcp/call.ts'
import { mayHearNow } from '../mcp/methods/resources.ts'
import { updatedUri } from './change-feed.ts'

/** The stream without updates of resources that `user` may not read; `offer`: the offer for this token. */
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
