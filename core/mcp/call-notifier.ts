// Sends the progress and log messages of a handler, and limits their rate.
import type { Clock, Timer } from '../http/clock.ts'
import type { Call } from './call.ts'
import { encodeNotification } from './message.ts'

/** After this many characters in an interval, log messages are dropped, and the latest progress is sent at its end. */
const MAX_SENT = 128 * 1024
/** A call that sends less needs no timer. */
const UNTIMED = 8 * 1024
/** Milliseconds. A timer ends an interval, so a handler that blocks the event loop sends no more. */
const INTERVAL = 100

type Params = Record<string, unknown>
export type CallNotifier = ReturnType<typeof createCallNotifier>

export function createCallNotifier(call: Call, clock: Clock) {
  let sent = 0
  let timer: Timer | undefined
  let latest: Params | undefined
  let dropped = 0
  let level: unknown

  function send(method: string, params: Params) {
    const message = encodeNotification(method, params)
    sent += message.length
    if (sent >= UNTIMED) timer ??= clock.setTimeout(end, INTERVAL)
    call.send(message)
  }

  /** Sends the latest progress. */
  function flush() {
    const progress = latest
    latest = undefined
    if (progress) send('notifications/progress', progress)
  }

  function end() {
    clock.clear(timer)
    timer = undefined
    sent = 0
    flush()
    if (dropped === 0) return
    const data = `${dropped} log messages were dropped: a call can send ${MAX_SENT / 1024} kB in ${INTERVAL} ms`
    dropped = 0
    send('notifications/message', { level, data })
  }

  return {
    flush,
    end,
    progress(params: Params) {
      latest = params
      if (sent < MAX_SENT) flush()
    },
    log(params: Params) {
      if (sent < MAX_SENT) return send('notifications/message', params)
      level = params['level']
      dropped++
    },
  }
}
