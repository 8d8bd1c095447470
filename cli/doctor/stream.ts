// Whether event streams arrive as they are written: by the order of events, not by a clock.
import { ask, bearer, failure, firstPiece, message, open } from './ask.ts'
import { type Finding, note, ok, wrong } from './finding.ts'
import type { Patient } from './patient.ts'

const CHECK = 'stream'
const UNBUFFER =
  'let the proxy pass text/event-stream on at once (nginx: proxy_buffering off; no compression of event streams)'
/** Requests that are asked and answered, one after the other, while a first event is on its way. */
const ROUND_TRIPS = 20

type Headers = Readonly<Record<string, string>>

/** `subscriptions/listen` acknowledges at once and then stays open: what is held back until its end never comes. */
async function firstEvent(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  const response = await open(url, { ...message('subscriptions/listen', { notifications: {} }, headers), signal })
  const { statusCode, headers: sent } = response
  if (!sent['content-type']?.startsWith('text/event-stream')) {
    response.destroy()
    return note(CHECK, `not looked at: the server opens no stream here (${statusCode})`)
  }
  if ((await firstPiece(response)) === undefined)
    return wrong(CHECK, 'a stream opens and nothing arrives on it', UNBUFFER)
  return ok(CHECK, 'the first event arrives while its stream is open')
}

async function manyRoundTrips(url: string, headers: Headers, signal: AbortSignal): Promise<Finding> {
  for (let trip = 0; trip < ROUND_TRIPS; trip++) {
    await ask(url, { ...message('tools/list', {}, headers), signal })
  }
  return wrong(CHECK, `${ROUND_TRIPS} later requests were answered before the first event of a stream came`, UNBUFFER)
}

export async function checkStream({ url, token, first }: Patient): Promise<Finding[]> {
  if (token === undefined && first.status === 401)
    return [note(CHECK, 'not looked at: streams need a token; pass --token')]
  const headers = bearer(token)
  const over = new AbortController()
  try {
    return [await Promise.race([firstEvent(url, headers, over.signal), manyRoundTrips(url, headers, over.signal)])]
  } catch (error) {
    return [wrong(CHECK, `a stream does not open: ${failure(error)}`, UNBUFFER)]
  } finally {
    over.abort()
  }
}
