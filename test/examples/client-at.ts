// A client at one end of a pair, written by hand: says what a test wants, and keeps what it is sent.
import { setTimeout as pause } from 'node:timers/promises'
import type { End } from '../../examples/in-memory-transport/pair.ts'

export interface Received {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** A client by hand. */
export function clientAt(end: End) {
  const seen: Received[] = []
  let closed = false
  end.onmessage = text => void seen.push(JSON.parse(text) as Received)
  end.onclose = () => {
    closed = true
  }
  const say = (message: object) => end.send(JSON.stringify({ jsonrpc: '2.0', ...message }))
  async function until(holds: (message: Received) => boolean): Promise<Received> {
    for (const limit = performance.now() + 5_000; performance.now() < limit; await pause(2)) {
      const at = seen.findIndex(holds)
      if (at !== -1) return seen.splice(at, 1)[0] as Received
    }
    throw new Error(`it did not come; there is ${JSON.stringify(seen)}`)
  }
  return {
    end,
    seen,
    say,
    until,
    isClosed: () => closed,
    request(id: number, method: string, params: object = {}) {
      say({ id, method, params })
      return until(message => message.id === id && message.method === undefined)
    },
    call: (id: number, name: string, more: object = {}) => say({ id, method: 'tools/call', params: { name, ...more } }),
  }
}
