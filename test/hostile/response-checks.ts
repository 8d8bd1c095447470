// Checks each response of the host: status, format, and whether its reader is allowed to see the content.

import type { Watcher } from './connection.ts'
import type { Answer, Head } from './response-parser.ts'
import type { Counts, FaultKind, Tally } from './tally.ts'
import { type Identity, MAY_SEE, type Marker, type Markers } from './target.ts'

/** Larger bodies are looked through for markers alone. */
const MAX_PARSED = 512 * 1024
/** Of a request, in a report. */
const SHOWN = 700
/** A header that attackers try to smuggle in. */
export const SMUGGLED = 'x-smuggled'

type Fail = (kind: FaultKind, text: string) => void

function countStatus({ status, headers }: Head, counts: Counts, fail: Fail) {
  if (status === 503 && headers.has('retry-after')) counts.refused++
  else if (status >= 500) {
    counts.serverError++
    fail('serverError', `status ${status}`)
  } else if (status === 429) counts.limited++
  else if (status >= 400) counts.clientError++
  else if (status >= 300) counts.redirected++
  else if (status >= 200) counts.ok++
  else {
    counts.broken++
    fail('malformed', `status ${status}`)
  }
}

function judgeMessage(value: unknown, fail: Fail) {
  for (const message of Array.isArray(value) ? value : [value]) {
    if (typeof message !== 'object' || message === null)
      fail('malformed', `no message: ${String(message).slice(0, 100)}`)
    else if (message.error?.code === -32603 && String(message.error.message).startsWith('Internal error')) {
      fail('internal', JSON.stringify(message.error).slice(0, 200))
    }
  }
}

function parse(text: string, fail: Fail): unknown {
  try {
    return JSON.parse(text)
  } catch {
    fail('malformed', `no JSON: ${text.slice(0, 100)}`)
    return undefined
  }
}

/** The messages of an event stream; what is not an address or empty must be JSON. */
function judgeEvents(text: string, broken: boolean, fail: Fail) {
  const events = text.split('\n\n')
  // The last may be cut.
  if (broken) events.pop()
  for (const event of events) {
    if (event.includes('event: endpoint')) continue
    for (const line of event.split('\n')) {
      if (line !== '' && !/^(?:data|event|id|retry):|^:/.test(line))
        fail('malformed', `no event: ${line.slice(0, 100)}`)
      const data = line.startsWith('data: ') ? line.slice(6) : ''
      if (data === '') continue
      const value = parse(data, fail)
      if (value !== undefined) judgeMessage(value, fail)
    }
  }
}

function judgeBody({ headers, body, broken, status }: Answer, fail: Fail) {
  if (body.length === 0 || body.length > MAX_PARSED) return
  const type = headers.get('content-type') ?? ''
  const text = body.toString('utf8')
  if (/\n\s+at .*(?:file:\/\/|node:|\/node_modules\/)/.test(text)) fail('malformed', `a stack: ${text.slice(0, 200)}`)
  if (type.startsWith('text/event-stream')) judgeEvents(text, broken, fail)
  else if (type.startsWith('application/json') && !broken) {
    const value = parse(text, fail)
    if (value !== undefined && status !== 200) judgeMessage(value, fail)
    else if (value !== undefined && JSON.stringify(value)?.includes('jsonrpc')) judgeMessage(value, fail)
  }
}

/** Bytes of a request as a report shows them. */
export function show(bytes: Uint8Array | undefined): string | undefined {
  if (!bytes) return undefined
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, SHOWN)).toString('latin1')
  return bytes.length > SHOWN ? `${JSON.stringify(text)} and ${bytes.length - SHOWN} bytes more` : JSON.stringify(text)
}

/** Judges what one connection of a round sees. */
export function createWatcher(tally: Tally, markers: Markers, round: string, who: Identity): Watcher {
  const counts = tally.of(round.split(':')[0] ?? round)
  const hidden = Object.entries(markers).filter(([marker]) => !MAY_SEE[marker as Marker].includes(who))
  let last: Uint8Array | undefined
  const fail: Fail = (kind, text) =>
    tally.fault({ kind, text: `${who}: ${text}`, rounds: [round], request: show(last) })
  return {
    sent(requests, bytes) {
      counts.sent += requests
      last = bytes
    },
    head(head) {
      countStatus(head, counts, fail)
      if (head.headers.has(SMUGGLED)) fail('malformed', `the answer has the header ${SMUGGLED}`)
    },
    answer(answer) {
      if (Number.isNaN(answer.status)) {
        counts.broken++
        fail('malformed', 'the answer is no HTTP')
      } else judgeBody(answer, fail)
    },
    bytes(text) {
      for (const [marker, word] of hidden) if (text.includes(word)) fail('secret', `saw what is marked "${marker}"`)
    },
  }
}
