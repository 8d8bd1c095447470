// Limits what `call` and `list` read from a server (the size of a message and of all pages of a list), and fails at once if a
// response ends without an answer.
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

async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  see: (event: StreamEvent) => void,
): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const event of readEvents(body, MAX_MESSAGE)) {
    see(event)
    yield encoder.encode(encodeEvent(event))
  }
}

async function* limited(chunks: AsyncIterable<Uint8Array>, take: (bytes: number) => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    take(chunk.byteLength)
    yield chunk
  }
}

function parseMessage(text: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof text !== 'string') return undefined
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? message : undefined
  } catch {
    return undefined
  }
}

const noAnswer = () => new StartError('the server ended its response without an answer')

/**
 * Bytes are counted after decompression. `fail` gets the reason: the official client tries a stream that broke again, and
 * waits for an answer that cannot come. `answersElsewhere`: HTTP+SSE, where answers come by another stream.
 */
export function limitAnswers(
  base: typeof fetch,
  fail: (reason: StartError) => void,
  { answersElsewhere = false } = {},
): typeof fetch {
  const lists = { left: MAX_MESSAGE }
  /** Ids of requests whose answer comes by a stream. */
  const unanswered = new Set<unknown>()
  return async (input, init) => {
    const response = await base(input, init)
    const { body, headers, status, statusText } = response
    const request = answersElsewhere ? undefined : parseMessage(init?.body)
    const isRequest = request !== undefined && 'method' in request && 'id' in request
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false
    const isResumed = new Headers(init?.headers).has('last-event-id')
    if (isRequest && response.ok && isStream) unanswered.add(request['id'])
    const isLost = isRequest ? response.ok && (body === null || status === 202) : isResumed && !response.ok
    if (isLost && (isRequest || unanswered.size > 0)) fail(noAnswer())
    if (body === null) return response
    const isList = /\/list$/.test(String(request?.['method']))
    const budget = isList ? lists : { left: isStream ? Number.POSITIVE_INFINITY : MAX_MESSAGE }
    const take = (bytes: number) => {
      budget.left -= bytes
      if (budget.left < 0) throw tooLarge()
    }
    // The official client resumes a stream with event ids.
    let isResumable = false
    function see({ id, data }: StreamEvent): void {
      isResumable ||= id !== undefined && id !== ''
      const message = unanswered.size === 0 ? undefined : parseMessage(data)
      if (message === undefined || 'method' in message) return
      if (message['id'] === undefined || message['id'] === null) unanswered.clear()
      else unanswered.delete(message['id'])
    }
    function checkAnswered(): void {
      const isMissing = isRequest ? unanswered.has(request['id']) : isResumed && unanswered.size > 0
      if (isStream && isMissing && !isResumable) fail(noAnswer())
    }
    async function* guarded(chunks: ReadableStream<Uint8Array>) {
      try {
        yield* limited(isStream ? eventsOf(chunks, see) : chunks, take)
      } catch (error) {
        const reason = error instanceof EventTooLarge ? tooLarge() : error
        if (reason instanceof StartError) fail(reason)
        else checkAnswered()
        throw reason
      }
      checkAnswered()
    }
    return new Response(ReadableStream.from(guarded(body)), { status, statusText, headers })
  }
}
