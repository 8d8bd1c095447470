// Reads an event stream message by message, while it is open.
import { modernRequest, parseEvents, type RpcMessage, type RpcOptions } from './rpc.ts'

export interface EventReader {
  /** The next message; undefined once the stream ended. */
  next(): Promise<RpcMessage>
  /** All remaining messages. */
  rest(): Promise<RpcMessage[]>
}

/** Comments, such as keep-alives, are skipped. */
export function readEvents(response: Response): EventReader {
  if (!response.body) throw new Error('the response has no body')
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  const messages: RpcMessage[] = []
  let buffer = ''

  async function next(): Promise<RpcMessage> {
    while (messages.length === 0) {
      const { value, done } = await reader.read()
      if (done) return undefined
      buffer += value
      const end = buffer.lastIndexOf('\n\n')
      if (end === -1) continue
      messages.push(...parseEvents(buffer.slice(0, end)))
      buffer = buffer.slice(end + 2)
    }
    return messages.shift()
  }

  async function rest() {
    const all: RpcMessage[] = []
    for (let message = await next(); message !== undefined; message = await next()) all.push(message)
    return all
  }
  return { next, rest }
}

/** A tool call of 2026-07-28 whose response is read while it is open. */
export async function openCall(
  url: string,
  name: string,
  args: object = {},
  { init, ...options }: RpcOptions = {},
): Promise<{ response: Response; events: EventReader }> {
  const { headers, body } = modernRequest('tools/call', { name, arguments: args }, options)
  const all = { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json', ...headers }
  const response = await fetch(url, { method: 'POST', body, headers: all as Record<string, string>, ...init })
  return { response, events: readEvents(response) }
}
