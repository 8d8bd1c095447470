// Sends one message: again where it certainly did not arrive, or where it may arrive twice; else it says that nobody knows.
import { AuthError } from '../../client/errors.ts'
import { printableUrl } from '../../client/text.ts'
import { refusal } from './answers.ts'
import { broken, createBackOff, type Link, sleep, unreachable, wasNotSent } from './link.ts'
import { Failure } from './messages.ts'

export interface Sending {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** True where it may arrive twice. */
  readonly harmless: boolean
  readonly signal: AbortSignal
  /** Default: the link's. */
  readonly patience?: number
}

/** Rejects with a Failure, an AuthError, or the signal's reason. */
export type Send = (sending: Sending) => Promise<Response>

const MAX_REDIRECTS = 5

/** Within one origin alone: headers of the person's own are for nobody else. */
function redirected(from: string, response: Response): string | undefined {
  const { status, headers } = response
  const location = headers.get('location')
  if (status < 300 || status >= 400 || location === null || !URL.canParse(location, from)) return undefined
  const to = new URL(location, from)
  if (to.origin === new URL(from).origin && (status === 307 || status === 308)) return to.href
  throw new Failure(
    'redirected',
    `${printableUrl(from)} redirects to ${printableUrl(to)}; give that address, if it is the server that is meant`,
  )
}

/** Seconds of a Retry-After, as milliseconds. */
function retryAfter({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? 0)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 30) * 1_000 : 0
}

export function createSend({ url, fetch, timing, note, signal: over }: Link): Send {
  let address = url

  async function once({ method, headers, body, signal }: Sending): Promise<Response> {
    const all = AbortSignal.any([signal, over])
    for (let hops = 0; ; hops++) {
      const init = { method, headers, redirect: 'manual', signal: all, ...(body !== undefined && { body }) } as const
      const response = await fetch(address, init)
      const next = redirected(address, response)
      if (next === undefined) return response
      await response.body?.cancel()
      if (hops === MAX_REDIRECTS)
        throw new Failure('redirected', `${printableUrl(url)} redirects in a circle; check the address`)
      address = next
    }
  }

  return async sending => {
    const until = performance.now() + (sending.patience ?? timing.patience)
    const backOff = createBackOff(timing)
    let again = sending.harmless
    for (;;) {
      let failure: Failure
      let wait = 0
      try {
        const response = await once(sending)
        if (response.status !== 503) return response
        await response.body?.cancel()
        failure = refusal(url, 503)
        wait = retryAfter(response)
      } catch (error) {
        if (sending.signal.aborted || over.aborted || error instanceof Failure || AuthError.is(error)) throw error
        const sent = !wasNotSent(error)
        if (sent && !again) throw Object.assign(broken(url), { cause: error })
        if (sent) again = false
        failure = Object.assign(unreachable(url, error), { cause: error })
      }
      const pause = Math.max(wait, backOff.pause)
      if (performance.now() + pause > until) throw failure
      note(`${failure.message}; trying again`)
      await sleep(pause, sending.signal, over)
    }
  }
}
