// The id by which a server's operator finds a request in their log: what the answer to the last request said it is. For `call`
// and `list`, where something fails.
import { printable } from '../../client/text.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import type { CommandContext } from '../context.ts'

const MOST = 128

export interface RequestIds {
  /** Hears what is answered to JSON-RPC requests; notifications and answers of ours have ids, too, that nobody asks for. */
  watch(base: typeof fetch): typeof fetch
  /** Nothing where the server gives none. */
  tell(): void
}

function isRequest(body: unknown): boolean {
  if (typeof body !== 'string') return false
  try {
    const message: unknown = JSON.parse(body)
    return isObject(message) && 'method' in message && 'id' in message
  } catch {
    return false
  }
}

export function createRequestIds({ say }: CommandContext): RequestIds {
  let last: string | undefined
  return {
    watch: base => async (input, init) => {
      const asks = isRequest(init?.body)
      // That of an earlier one is not this one's.
      if (asks) last = undefined
      const response = await base(input, init)
      if (asks) last = response.headers.get('x-request-id') ?? undefined
      return response
    },
    tell() {
      if (last !== undefined)
        say(`request id: ${printable(last, MOST)} (by it the server's operator finds the request)`)
    },
  }
}
