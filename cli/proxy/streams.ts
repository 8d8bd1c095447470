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
  id: string | undefined
  retry: number | undefined
}

/** A stream that its server does not end after the answer is closed so much later, milliseconds. */
const FAREWELL = 500
/** A stream that lived so long was no failure, milliseconds. */
const SETTLED = 5_000

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
    if (id !== undefined) place.id = id
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

  const get = (place: Place, signal: AbortSignal) =>
    send({
      method: 'GET',
      headers: { ...session.headers(), accept: SSE_TYPE, ...(place.id !== undefined && { 'Last-Event-ID': place.id }) },
      harmless: true,
      signal,
      patience: 0,
    })

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
    if (hasLost(id, response.status, text)) {
      session.reopen(epoch).catch(error => note(String(error)))
      throw lostInCall(url)
    }
    if (response.status >= 500 || response.status === 429 || response.status === 409) return undefined
    throw broken(url)
  }

  async function resumed(place: Place, epoch: number, signal: AbortSignal): Promise<Response> {
    const until = performance.now() + timing.resumption
    const backOff = createBackOff(timing)
    for (let wait = place.retry ?? backOff.pause; ; wait = Math.max(place.retry ?? 0, backOff.pause)) {
      await sleep(wait, signal, over)
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
      await hearAll(link, response, place, () => undefined).catch(error => note(`the stream of the session: ${error}`))
      return true
    }
    const text = await readJson(response).catch(() => undefined)
    if (session.epoch === epoch && hasLost(id, response.status, text)) {
      await session.reopen(epoch).catch(error => note(String(error)))
      return false
    }
    if (response.status === 400 && place.id !== undefined) {
      place.id = undefined
      return true
    }
    return response.status >= 500 || [401, 403, 409, 429].includes(response.status)
  }

  return {
    async follow(first, exchange, end, heard = () => undefined) {
      const { epoch } = session
      const place: Place = { id: undefined, retry: undefined }
      let timer: NodeJS.Timeout | undefined
      const answered = (text: string) => {
        heard(text)
        // `hear` takes it off the list next.
        setImmediate(() => {
          if (exchange.open.size === 0) timer ??= setTimeout(() => end.abort(), FAREWELL)
        })
      }
      try {
        for (let response = first; ; response = await resumed(place, epoch, exchange.signal)) {
          await hearAll(link, response, place, answered).catch(error => note(`a stream broke: ${error}`))
          if (exchange.open.size === 0) return
          if (place.id === undefined) throw broken(url)
        }
      } finally {
        clearTimeout(timer)
      }
    },

    async listen() {
      const { epoch } = session
      const place: Place = { id: undefined, retry: undefined }
      const backOff = createBackOff(timing)
      while (session.epoch === epoch && !over.aborted) {
        const begun = performance.now()
        if (!(await listenOnce(place, epoch))) return
        if (performance.now() - begun > SETTLED) backOff.reset()
        await sleep(Math.max(place.retry ?? 0, backOff.pause), over).catch(() => undefined)
      }
    },
  }
}
