// A raw client at one end of a pair: sends messages of the test, and keeps received ones.
import type { End } from '../../examples/in-memory-transport/pair.ts'
import { eventually } from '../support/eventually.ts'

export interface Received {
  readonly id?: unknown
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

/** Takes the first message that `holds` out of what was `seen`, once it is there. */
export async function takeMessage(seen: Received[], holds: (message: Received) => boolean): Promise<Received> {
  const look = () => {
    const at = seen.findIndex(holds)
    return at === -1 ? { seen } : { taken: seen.splice(at, 1)[0] }
  }
  const { taken } = await eventually('a message', look, ({ taken }) => taken)
  return taken as Received
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
  const until = (holds: (message: Received) => boolean) => takeMessage(seen, holds)
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
