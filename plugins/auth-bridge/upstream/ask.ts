// How the provider is asked over HTTP: within a time, up to a size, never by way of a redirect, and never without TLS
// beyond this machine.
import { parseJson, shownUrl } from '../../../core/auth.ts'
import { errorText } from '../../../core/index.ts'
import { isLocal } from './settings.ts'
import { UpstreamError } from './upstream.ts'

const TIMEOUT = 10_000
const MAX_BYTES = 1_024 * 1_024

export interface AskInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | URLSearchParams | null | undefined
}

export type Ask = (url: string, init?: AskInit) => Promise<Response>

export interface AskSettings {
  readonly local: boolean
  readonly timeout?: number | undefined
}

/** Rejects with an UpstreamError for a body of more than 1 MiB. */
export async function readText(response: Response, shown: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_BYTES)
      throw new UpstreamError('untrusted', `${shown} answered more than ${MAX_BYTES} bytes`, { fix: WRONG_PAGE })
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

export const WRONG_PAGE = 'check that the issuer is right, and that no proxy on the way answers with a page of its own'

const NO_TLS = /^(?:ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)|EPROTO)$/
const NO_TRUST = /^(?:CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/

export function fixOfConnection(thrown: unknown): string | undefined {
  const { cause } = thrown instanceof Error ? thrown : {}
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (NO_TLS.test(code)) return 'what answers there does not speak TLS: is it http? http:// is for this machine alone'
  if (NO_TRUST.test(code))
    return 'this machine does not trust its certificate: name the file of your own authority in NODE_EXTRA_CA_CERTS'
  return undefined
}

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

const fixOfStatus = (status: number) =>
  status >= 500 || status === 408
    ? 'the provider itself fails, or a proxy before it: see its status page or log, then try again'
    : 'the provider itself fails for now, it takes no more requests: try again later'

const KEPT = ['content-type', 'link', 'date', 'age'] as const

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
      if (thrown instanceof UpstreamError) throw thrown
      throw new UpstreamError('unavailable', `${shown}: ${reasonOf(thrown)}`, { fix: fixOfConnection(thrown) })
    }
    const { status, headers } = response
    if (status >= 300 && status < 400) {
      throw new UpstreamError('misconfigured', `${shown} answers ${status}, and redirects are not followed`, {
        fix: 'check the issuer, or the endpoints, in the provider options',
      })
    }
    if (isBusy(response))
      throw new UpstreamError('unavailable', `${shown} answers ${status}`, { fix: fixOfStatus(status) })
    const kept = KEPT.map(name => [name, headers.get(name) ?? ''] as const).filter(([, value]) => value !== '')
    // Not WWW-Authenticate: oauth4webapi would look at that, and no more at what the body says.
    return new Response(status === 204 || status === 205 ? null : text, { status, headers: Object.fromEntries(kept) })
  }
}

export async function jsonOf(response: Response): Promise<unknown> {
  try {
    return parseJson(await response.clone().text())
  } catch {
    return undefined
  }
}
