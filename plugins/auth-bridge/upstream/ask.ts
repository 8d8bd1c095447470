// HTTP requests to the provider with limits on time and size, without redirects; TLS except on loopback.
import { parseJson, shownUrl } from '../../../core/auth.ts'
import { errorText } from '../../../core/plugin.ts'
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

/** Rejects with an UpstreamError above 1 MiB. */
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

/** GitHub sends 403 if it is busy. */
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

export function checkAddress(url: string, local: boolean): void {
  if (isSecure(url, local)) return
  throw new UpstreamError('untrusted', `${shownUrl(url)} is no https address, so nothing is sent there`)
}

/** Returns statuses below 500 except redirects and retry responses. Errors omit the query and sent data. */
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
    // WWW-Authenticate is omitted: oauth4webapi would then ignore the body.
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
