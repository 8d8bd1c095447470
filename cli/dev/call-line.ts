// One line of the terminal a call: when, who, what, how long, and what came of it. Never what was in it. For `mcp-host dev`.
import { printable } from '../../client/printable.ts'
import type { CreateHostOptions } from '../../core/create-host.ts'

type Observer = NonNullable<CreateHostOptions['observe']>
type CallRecord = Parameters<Observer>[0]

/** Characters of what a client chose. */
const MOST_TEXT = 48
/** Lines in a second; more could not be read. */
const MOST_LINES = 20

const shown = (text: string) => printable(text, MOST_TEXT)

/** The name or URI in a call's params, which may be anything. */
function nameIn(params: Readonly<Record<string, unknown>>): string {
  const name = params['name'] ?? params['uri']
  return typeof name === 'string' ? ` ${shown(name)}` : ''
}

const OUTCOMES = {
  ok: 'ok',
  input_required: 'asked the client',
  tool_error: 'tool error',
  error: 'refused',
  refused: 'refused',
  cancelled: 'cancelled',
} as const

export function callLine(record: CallRecord, now = new Date()): string {
  const { call, route = '', outcome, error, milliseconds } = record
  const time = now.toTimeString().slice(0, 8)
  const who = call?.user ? shown(call.user.subject) : 'anonymous'
  const what = call ? `${shown(call.method)}${nameIn(call.params)}` : route
  const why = error ? `: ${error.kind}` : ''
  const took = milliseconds < 10 ? milliseconds.toFixed(1) : milliseconds.toFixed(0)
  return `${time}  ${who}  ${what}  ${took} ms  ${OUTCOMES[outcome]}${why}`
}

/** Prints a line a call; of many at once the rest are counted. */
export function createCallLines(print: (line: string) => void): Observer {
  let lines = 0
  let left = 0
  function nextSecond() {
    if (left > 0) print(`          and ${left} more ${left === 1 ? 'call' : 'calls'}`)
    lines = left = 0
  }
  return record => {
    const { call, route, outcome } = record
    // What is no request has no outcome; pings are many. Of other HTTP requests those that a route refused are of interest.
    if (call ? call.id === undefined || call.method === 'ping' : outcome !== 'refused' || route === undefined) return
    if (lines++ === 0) setTimeout(nextSecond, 1_000).unref()
    if (lines > MOST_LINES) left++
    else print(callLine(record))
  }
}
