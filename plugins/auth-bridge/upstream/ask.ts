// How the provider is asked over HTTP: within a time, up to a size, never by way of a redirect, and never without TLS
// beyond this machine.
import { shownUrl } from '../../../core/auth.ts'
import { errorText } from '../../../core/index.ts'
import { isLocal } from './settings.ts'
import { UpstreamError } from './upstream.ts'

/** For one request, its body included. */
const TIMEOUT = 10_000
const MAX_BYTES = 1_024 * 1_024

/** What of a request is told; as oauth4webapi tells it. */
export interface AskInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams | null | undefined
}

export type Ask = (url: string, init?: AskInit) => Promise<Response>

export interface AskSettings {
  /** Whether addresses of this machine may be asked without TLS. */
  readonly local: boolean
  /** Milliseconds. Default 10 s. */
  readonly timeout?: number | undefined
}

async function readText(response: Response, shown: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_BYTES) throw new UpstreamError('untrusted', `${shown} answered more than ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The reason of a connection that failed, without what was sent. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return 'it cannot be reached'
  if (thrown.name === 'TimeoutError') return 'it did not answer in time'
  const { cause } = thrown
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  return code ?? (cause instanceof Error ? errorText(cause).slice(0, 200) : 'it cannot be reached')
}

/** True where the provider says that it is not now able to answer: GitHub says so with a 403. */
const isBusy = ({ status, headers }: Response) =>
  status >= 500 ||
  status === 408 ||
  status === 429 ||
  (status === 403 && (headers.get('x-ratelimit-remaining') === '0' || headers.has('retry-after')))

const isSecure = (url: string, local: boolean) =>
  URL.canParse(url) && (new URL(url).protocol === 'https:' || (local && isLocal(url)))

/** Throws an UpstreamError where the address is not one that a secret may go to. */
export function checkAddress(url: string, local: boolean): void {
  if (isSecure(url, local)) return
  throw new UpstreamError('untrusted', `${shownUrl(url)} is no https address, so nothing is sent there`)
}

/**
 * Gives answers whole, with every status below 500 but redirects and those that mean "later". Rejects with an UpstreamError
 * that names the URL without its query, and nothing of what was sent.
 */
export function createAsk({ local, timeout = TIMEOUT }: AskSettings): Ask {
  return async (url, init = {}) => {
    checkAddress(url, local)
    const shown = shownUrl(url)
    let response: Response
    let text: string
    try {
      const signal = AbortSignal.timeout(timeout)
      const { method = 'GET', headers = {}, body = null } = init
      response = await fetch(url, { method, headers, body, redirect: 'manual', signal })
      text = await readText(response, shown)
    } catch (thrown) {
      // The cause may hold the request: what of it may be told is in the sentence.
      if (thrown instanceof UpstreamError) throw thrown
      throw new UpstreamError('unavailable', `${shown}: ${reasonOf(thrown)}`)
    }
    const { status, headers } = response
    if (status >= 300 && status < 400) {
      throw new UpstreamError('misconfigured', `${shown} answers ${status}, and redirects are not followed`, {
        fix: 'check the issuer, or the endpoints, in the provider options',
      })
    }
    if (isBusy(response)) throw new UpstreamError('unavailable', `${shown} answers ${status}`)
    const type = headers.get('content-type')
    const link = headers.get('link')
    // Not WWW-Authenticate: oauth4webapi would look at that, and no more at what the body says.
    return new Response(status === 204 || status === 205 ? null : text, {
      status,
      headers: { ...(type !== null && { 'content-type': type }), ...(link !== null && { link }) },
    })
  }
}

/** The JSON of an answer; undefined where it is none. */
export async function jsonOf(response: Response): Promise<unknown> {
  try {
    return JSON.parse(await response.clone().text())
  } catch {
    return undefined
  }
}
