// Reads Server-Sent Events (HTML, "Interpreting an event stream") with a size limit.
import { RemoteError } from '../errors.ts'

export interface StreamEvent {
  readonly event: string
  /** Empty for an event without data, which can still have an id. */
  readonly data: string
  readonly id: string | undefined
  readonly retry: number | undefined
}

/** Maximum reconnection time that a server can set, milliseconds. */
const MAX_RETRY = 3_600_000

const tooLargeError = (maxLength: number) =>
  new RemoteError('too-large', `an event of the server is larger than ${maxLength} characters`, { executed: 'maybe' })

interface EventDraft {
  event: string
  data: string | undefined
  id: string | undefined
  retry: number | undefined
  size: number
}

const createDraft = (): EventDraft => ({ event: 'message', data: undefined, id: undefined, retry: undefined, size: 0 })

function readField(draft: EventDraft, line: string): void {
  const colon = line.indexOf(':')
  if (colon === 0) return
  const field = colon === -1 ? line : line.slice(0, colon)
  const value = colon === -1 ? '' : line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1)
  if (field === 'data') draft.data = draft.data === undefined ? value : `${draft.data}\n${value}`
  else if (field === 'event') draft.event = value
  else if (field === 'id' && !value.includes('\0')) draft.id = value
  else if (field === 'retry' && /^\d{1,9}$/.test(value)) draft.retry = Math.min(Number(value), MAX_RETRY)
}

/** Returns the events that each chunk completes. Throws a RemoteError `too-large` for events of more than `maxLength` characters. */
function createEventParser(maxLength: number): (chunk: Uint8Array) => StreamEvent[] {
  const decoder = new TextDecoder()
  let partial: string[] = []
  let size = 0
  let endedWithReturn = false
  let draft = createDraft()

  function end(line: string, events: StreamEvent[]): void {
    if (line !== '') {
      draft.size += line.length
      if (draft.size > maxLength) throw tooLargeError(maxLength)
      readField(draft, line)
      return
    }
    const { event, data, id, retry } = draft
    draft = createDraft()
    if (data !== undefined || id !== undefined || retry !== undefined)
      events.push({ event, data: data ?? '', id, retry })
  }

  return chunk => {
    const events: StreamEvent[] = []
    const text = decoder.decode(chunk, { stream: true })
    if (text === '') return events
    // Skips the second half of a CRLF that was split between chunks.
    const rest = endedWithReturn && text.startsWith('\n') ? text.slice(1) : text
    endedWithReturn = text.endsWith('\r')
    const lines = rest.includes('\r') ? rest.split(/\r\n|\n|\r/) : rest.split('\n')
    const last = lines.pop() ?? ''
    for (const line of lines) {
      if (partial.length === 0) end(line, events)
      else {
        partial.push(line)
        const whole = partial.join('')
        partial = []
        size = 0
        end(whole, events)
      }
    }
    if (last !== '') {
      partial.push(last)
      size += last.length
      if (size > maxLength) throw tooLargeError(maxLength)
    }
    return events
  }
}

export async function* readEvents(body: AsyncIterable<Uint8Array>, maxLength: number): AsyncGenerator<StreamEvent> {
  const parse = createEventParser(maxLength)
  for await (const chunk of body) yield* parse(chunk)
}
