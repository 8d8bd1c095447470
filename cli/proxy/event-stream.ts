// Reads Server-Sent Events (HTML, "Interpreting an event stream") with a size limit.

export interface StreamEvent {
  readonly event: string
  /** Empty for an event without data, which can still have an id. */
  readonly data: string
  readonly id: string | undefined
  readonly retry: number | undefined
}

/** Maximum reconnection time that a server can set, milliseconds. */
const MAX_RETRY = 3_600_000

export class EventTooLarge extends Error {
  constructor(most: number) {
    super(`an event of the server is larger than ${most} characters`)
  }
}

interface Draft {
  event: string
  data: string[]
  id: string | undefined
  retry: number | undefined
  size: number
}

const blank = (): Draft => ({ event: 'message', data: [], id: undefined, retry: undefined, size: 0 })

function take(draft: Draft, line: string): void {
  const colon = line.indexOf(':')
  if (colon === 0) return
  const field = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
  if (field === 'data') draft.data.push(value)
  else if (field === 'event') draft.event = value
  else if (field === 'id' && !value.includes('\0')) draft.id = value
  else if (field === 'retry' && /^\d{1,9}$/.test(value)) draft.retry = Math.min(Number(value), MAX_RETRY)
}

/** Lines of a stream in linear time. Rejects for a line of more than `most` characters. */
async function* readTextLines(body: ReadableStream<Uint8Array>, most: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let size = 0
  let endedWithReturn = false
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true })
    if (text === '') continue
    // Skips the second half of a CRLF that was split between chunks.
    const lines = text.slice(endedWithReturn && text.startsWith('\n') ? 1 : 0).split(/\r\n|\n|\r/)
    endedWithReturn = text.endsWith('\r')
    const last = lines.pop() ?? ''
    if (lines.length > 0) {
      lines[0] = begun.join('') + lines[0]
      begun = []
      size = 0
    }
    begun.push(last)
    size += last.length
    yield* lines
    if (size > most) throw new EventTooLarge(most)
  }
}

export async function* readEvents(body: ReadableStream<Uint8Array>, most: number): AsyncGenerator<StreamEvent> {
  let draft = blank()
  for await (const line of readTextLines(body, most)) {
    if (line !== '') {
      draft.size += line.length
      if (draft.size > most) throw new EventTooLarge(most)
      take(draft, line)
      continue
    }
    const { event, data, id, retry } = draft
    draft = blank()
    if (data.length > 0 || id !== undefined || retry !== undefined) yield { event, data: data.join('\n'), id, retry }
  }
}
