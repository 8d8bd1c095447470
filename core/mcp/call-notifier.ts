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

export class CallNotifier {
  readonly #call: Call
  readonly #clock: Clock
  #sent = 0
  #timer: Timer | undefined
  #latest: Params | undefined
  #dropped = 0
  #level: unknown

  constructor(call: Call, clock: Clock) {
    this.#call = call
    this.#clock = clock
  }

  progress(params: Params) {
    this.#latest = params
    if (this.#sent < MAX_SENT) this.flush()
  }

  log(params: Params) {
    this.#level = params['level']
    if (this.#sent >= MAX_SENT) return void this.#dropped++
    this.flush()
    this.#send('notifications/message', params)
  }

  /** Sends the latest progress. */
  flush() {
    const latest = this.#latest
    this.#latest = undefined
    if (latest) this.#send('notifications/progress', latest)
  }

  end() {
    this.#clock.clear(this.#timer)
    this.#timer = undefined
    this.#sent = 0
    this.flush()
    if (this.#dropped === 0) return
    const data = `${this.#dropped} log messages were dropped: a call can send ${MAX_SENT / 1024} kB in ${INTERVAL} ms`
    this.#dropped = 0
    this.#send('notifications/message', { level: this.#level, data })
  }

  #send(method: string, params: Params) {
    const message = encodeNotification(method, params)
    this.#sent += message.length
    if (this.#sent >= UNTIMED) this.#timer ??= this.#clock.setTimeout(() => this.end(), INTERVAL)
    this.#call.send(message)
  }
}
