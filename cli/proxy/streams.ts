// The streams of a session: the answer to a POST, which is had again from where it broke, and the one for what belongs to
// no request (2025-11-25 basic/transports, "Resumability and Redelivery").
import { isStream, readJson } from './answers.ts'
import { readEvents } from './event-stream.ts'
import type { Exchange } from './exchange.ts'
import { SSE_TYPE } from './headers.ts'
import { broken, createBackOff, type Link, MAX_MESSAGE, sleep } from './link.ts'
import { Failure } from './messages.ts'
import type { Send } from './send.ts'
import { hasLost, type KeptSession } from './session.ts'

/** Where a stream broke, and when to come back. */
interface Place {
  /** As a header carries it; undefined where none can. */
  id: string | undefined
  retry: number | undefined
  /** The standing stream was there. */
  wasOpen: boolean
}

const start = (): Place => ({ id: undefined, retry: undefined, wasOpen: false })

type BackOff = ReturnType<typeof createBackOff>

/** The bytes of an event's id, each one character, as headers are made of them (HTML, "Last-Event-ID"). */
const toHeader = (id: string): string | undefined =>
  /^[\t -~\u0080-\uffff]+$/.test(id) ? Buffer.from(id).toString('latin1') : undefined

/** A stream that its server does not end after the answer is closed so much later, milliseconds. */
const FAREWELL = 500
export const lostInCall = (url: string): Failure =>
  new Failure(
    'session lost',
    `${url} has lost the session while it ran this, and whether it was carried out is not known; a new session is open: look before it is sent again`,
    { retryable: false },
  )

/** Hands every message of a response on; gives where it came to. Rejects where the connection breaks. */
async function hearAll(link: Link, response: Response, place: Place, heard: (text: string) => void): Promise<void> {
  if (!response.body) return
  for await (const { event, data, id, retry } of readEvents(response.body, MAX_MESSAGE)) {
    if (id !== undefined) place.id = toHeader(id)
    if (retry !== undefined) place.retry = retry
    if (event !== 'message' || data === '') continue
    heard(data)
    await link.hear(data)
  }
}

export interface SessionStreams {
  /** The answer to a POST that is a stream, to its end. Rejects with a Failure where not all is answered. */
  follow(response: Response, exchange: Exchange, end: AbortController, heard?: (text: string) => void): Promise<void>
  /** Hears what belongs to no request, for as long as the session is this one. */
  listen(): Promise<void>
}

export function createSessionStreams(link: Link, send: Send, session: KeptSession): SessionStreams {
  const { url, timing, signal: over, note } = link
  /** Of one session and the next: a server that loses each is not asked for them ever again without a pause. */
  const standing = createBackOff(timing)

  const get = (place: Place, signal: AbortSignal) =>
    send({
      method: 'GET',
      headers: { ...session.headers(), accept: SSE_TYPE, ...(place.id !== undefined && { 'Last-Event-ID': place.id }) },
      harmless: true,
      signal,
      patience: 0,
    })

  /** Undefined where nobody can say. */
  const isLost = () => session.isLost().catch(error => void note(`the session: ${error}`))

  /** Undefined: later. Throws a Failure where the stream is not to be had any more. */
  async function resume(place: Place, epoch: number, signal: AbortSignal): Promise<Response | undefined> {
    const { id } = session
    const response = await get(place, signal).catch(error => {
      if (signal.aborted || over.aborted) throw error
      note(String(error))
      return undefined
    })
    if (!response || isStream(response)) return response
    const text = await readJson(response)
    // Servers without such streams may say 404, too.
    const lost = hasLost(id, response.status, text) && (await isLost())
    if (lost === undefined) return undefined
    if (lost || session.epoch !== epoch) {
      session.reopen(epoch).catch(error => note(String(error)))
      throw lostInCall(url)
    }
    if (response.status >= 500 || response.status === 429 || response.status === 409) return undefined
    throw broken(url)
  }

  async function resumed(place: Place, epoch: number, signal: AbortSignal, backOff: BackOff): Promise<Response> {
    const until = performance.now() + timing.resumption
    for (;;) {
      await sleep(Math.max(place.retry ?? 0, backOff.pause), signal, over)
      const response = await resume(place, epoch, signal)
      if (response) return response
      if (performance.now() > until) throw broken(url)
    }
  }

  /** One connection of the standing stream. False: there is none to be had. */
  async function listenOnce(place: Place, epoch: number): Promise<boolean> {
    const { id } = session
    const response = await get(place, over).catch(error => {
      note(`the stream of the session: ${error}`)
      return undefined
    })
    if (!response) return true
    if (isStream(response)) {
      place.wasOpen = true
      await hearAll(link, response, place, () => undefined).catch(error => note(`the stream of the session: ${error}`))
      return true
    }
    const text = await readJson(response).catch(() => undefined)
    // Of a server that never had this stream, 404 says no more than that.
    const lost = place.wasOpen && hasLost(id, response.status, text) && (await isLost())
    if (lost === undefined) return true
    if (lost) {
      await session.reopen(epoch).catch(error => note(String(error)))
      return false
    }
    if ([400, 404].includes(response.status) && place.id !== undefined) {
      place.id = undefined
      return true
    }
    return response.status >= 500 || [401, 403, 409, 429].includes(response.status)
  }

  return {
    async follow(first, exchange, end, heard = () => undefined) {
      const { epoch } = session
      const place = start()
      const backOff = createBackOff(timing)
      let timer: NodeJS.Timeout | undefined
      const answered = (text: string) => {
        heard(text)
        backOff.reset()
        // `hear` takes it off the list next.
        setImmediate(() => {
          if (exchange.open.size === 0) timer ??= setTimeout(() => end.abort(), FAREWELL)
        })
      }
      try {
        for (let response = first; ; response = await resumed(place, epoch, exchange.signal, backOff)) {
          const begun = performance.now()
          await hearAll(link, response, place, answered).catch(error => note(`a stream broke: ${error}`))
          if (exchange.open.size === 0) return
          backOff.ended(begun)
          if (place.id === undefined) throw broken(url)
        }
      } finally {
        clearTimeout(timer)
      }
    },

    async listen() {
      const { epoch } = session
      const place = start()
      while (session.epoch === epoch && !over.aborted) {
        const begun = performance.now()
        if (!(await listenOnce(place, epoch))) return
        standing.ended(begun)
        await sleep(Math.max(place.retry ?? 0, standing.pause), over).catch(() => undefined)
      }
    },
  }
}
