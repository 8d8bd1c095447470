// Which transport the server has: Streamable HTTP, or the older HTTP+SSE where its first answer says so (2025-11-25
// basic/transports, "Backwards Compatibility").
import type { ToolHeaders } from './headers.ts'
import type { Link } from './link.ts'
import { createOlderSse } from './older-sse.ts'
import { createStreamable, MaybeOlder, type Remote } from './streamable.ts'

export type TransportName = 'auto' | 'http' | 'sse'

export function createRemote(link: Link, tools: ToolHeaders, transport: TransportName): Remote {
  let remote = transport === 'sse' ? createOlderSse(link) : createStreamable(link, tools)
  return {
    async carry(exchange) {
      try {
        return await remote.carry(exchange)
      } catch (error) {
        if (!(error instanceof MaybeOlder)) throw error
        if (transport !== 'auto') throw error.refused
        const older = createOlderSse(link)
        try {
          await older.carry(exchange)
        } catch (failure) {
          link.note(`HTTP+SSE: ${failure}`)
          throw error.refused
        }
        link.note('the server is an older one: HTTP+SSE')
        remote = older
      }
    },
    leave: signal => remote.leave(signal),
  }
}
