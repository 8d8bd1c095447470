// Reads Server-Sent Events (HTML, "Interpreting an event stream"), each of a bounded size.

export interface StreamEvent {
  readonly event: string
  /** Empty where the event has none: it may still carry an id. */
  readonly data: string
  readonly id: string | undefined
  /** Milliseconds. */
  readonly retry: number | undefined
}

/** Milliseconds that a server can have its client wait: an hour. */
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

/** Lines of a stream; each chunk is looked at once, however long its line is. Rejects past `most` characters of one. */
async function* readTextLines(body: ReadableStream<Uint8Array>, most: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let begun: string[] = []
  let size = 0
  let endedWithReturn = false
  for await (const chunk of body) {
    const text = decoder.decode(chunk, { stream: true })
    if (text === '') continue
    // The newline of a line end whose carriage return came before.
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

/** Each event as it is complete. Rejects where the connection breaks, and where an event is larger than `most`. */
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
