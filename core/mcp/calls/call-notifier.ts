// Sends the progress and log messages of a handler, and limits bursts.

import { encodeNotification } from '../wire/message.ts'
import type { Call } from './call.ts'

/**
 * Maximum characters in one turn of the event loop: a handler that does not pause would fill the connection's buffer. Above the
 * first, only the latest progress is sent, before the next log message or turn; above the second, log messages are dropped.
 */
const MAX_PROGRESS = 256 * 1024
const MAX_LOGGED = 512 * 1024
/** A call that sends less needs no reset. */
const MAX_UNCOUNTED = 8 * 1024

type Params = Record<string, unknown>
export type CallNotifier = ReturnType<typeof createCallNotifier>

export function createCallNotifier(call: Call) {
  let sent = 0
  let nextTurn: NodeJS.Immediate | undefined
  let latest: string | undefined
  let dropped = 0
  let level: unknown

  function send(message: string) {
    sent += message.length
    if (sent >= MAX_UNCOUNTED) nextTurn ??= setImmediate(end)
    call.send(message)
  }

  function flush() {
    const progress = latest
    latest = undefined
    if (progress !== undefined) send(progress)
  }

  function end() {
    clearImmediate(nextTurn)
    nextTurn = undefined
    sent = 0
    flush()
    if (dropped === 0) return
    const data = `${dropped} log messages were dropped: a call can send ${MAX_LOGGED / 1024} kB without a pause`
    dropped = 0
    send(encodeNotification('notifications/message', { level, data }))
  }

  return {
    flush,
    end,
    progress(params: Params) {
      // Throws to the handler, unlike a later encoding.
      latest = encodeNotification('notifications/progress', params)
      if (sent < MAX_PROGRESS) flush()
    },
    log(params: Params) {
      const message = encodeNotification('notifications/message', params)
      if (sent < MAX_LOGGED) {
        flush()
        return send(message)
      }
      level = params['level']
      dropped++
    },
  }
}
