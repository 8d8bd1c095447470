// Limits what a server can have `call` and `list` read: each message as `proxy` does, and all pages of its lists together.
import { StartError } from '../../core/http/errors.ts'
import { isObject } from '../../core/mcp/is-object.ts'
import { EventTooLarge, readEvents, type StreamEvent } from '../proxy/event-stream.ts'
import { MAX_MESSAGE } from '../proxy/link.ts'

const tooLarge = () => new StartError(`the server sent more than ${MAX_MESSAGE / 2 ** 20} MB in one answer`)

/** An event as a server writes it; one that only has an id keeps its empty data, so that the id counts. */
function encodeEvent({ event, data, id, retry }: StreamEvent): string {
  const lines = [
    ...(retry === undefined ? [] : [`retry: ${retry}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(data === '' && id === undefined ? [] : [`event: ${event}`, ...data.split('\n').map(line => `data: ${line}`)]),
  ]
  return `${lines.join('\n')}\n\n`
}

async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const event of readEvents(body, MAX_MESSAGE)) yield encoder.encode(encodeEvent(event))
}

async function* limited(chunks: AsyncIterable<Uint8Array>, take: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    take(chunk.byteLength)
    yield chunk
  }
}

function isListRequest(body: unknown): boolean {
  if (typeof body !== 'string') return false
  try {
    const message: unknown = JSON.parse(body)
    return isObject(message) && /\/list$/.test(String(message['method']))
  } catch {
    return false
  }
}

/** Bytes are counted after decompression. `fail` gets the reason: the official client tries a stream that broke again. */
export function limitAnswers(base: typeof fetch, fail: (reason: StartError) => void): typeof fetch {
  const lists = { left: MAX_MESSAGE }
  return async (input, init) => {
    const response = await base(input, init)
    const { body, headers, status, statusText } = response
    if (body === null) return response
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const isList = isListRequest(init?.body)
    const budget = isList ? lists : { left: isStream ? Number.POSITIVE_INFINITY : MAX_MESSAGE }
    const take = (bytes: number) => {
      budget.left -= bytes
      if (budget.left < 0) throw tooLarge()
    }
    async function* guarded(chunks: ReadableStream<Uint8Array>) {
      try {
        yield* limited(isStream ? eventsOf(chunks) : chunks, take)
      } catch (error) {
        const reason = error instanceof EventTooLarge ? tooLarge() : error
        if (reason instanceof StartError) fail(reason)
        throw reason
      }
    }
    return new Response(ReadableStream.from(guarded(body)), { status, statusText, headers })
  }
}
