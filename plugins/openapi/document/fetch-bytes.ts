// Fetches documents from URLs, from allowed addresses only and without redirects.
import type { Services } from '../../../core/internal.ts'
import { errorText } from '../../../core/plugin.ts'
import { headerOf, sendAlone } from '../request-send.ts'

/** Rejects with a reason without the URL. */
type FetchBytes = (url: URL, maxBytes: number) => Promise<Uint8Array>

const TIMEOUT = 30_000
const HEADERS = [
  ...['accept', 'application/vnd.oai.openapi+json, application/json, application/yaml, */*;q=0.5'],
  ...['accept-encoding', 'gzip, deflate, br', 'user-agent', 'mcp-host'],
]

/** `open`: called for each fetch. */
export const createFetchBytes =
  (open: () => ReturnType<Services['openConnections']>): FetchBytes =>
  async (url, maxBytes) => {
    try {
      const request = { method: 'GET', headers: [...HEADERS], timeout: TIMEOUT, maxResponse: maxBytes }
      const { status, headers, body, isCut } = await sendAlone(open, url, request)
      if (status >= 300 && status < 400) {
        throw new Error(`HTTP ${status}, redirect to ${headerOf(headers, 'location')}: use that URL`)
      }
      if (status !== 200) throw new Error(`HTTP ${status}`)
      if (isCut) throw new Error(`more than ${Math.floor(maxBytes / 1_024)} kB`)
      return body
    } catch (error) {
      throw new Error(withFix(error), { cause: error })
    }
  }

/** Adds advice on how to allow a refused address. */
function withFix(error: unknown): string {
  const { fix, code } = error as { readonly fix?: unknown; readonly code?: unknown }
  const text = errorText(error) || `${code}`
  return typeof fix === 'string' && !text.includes(fix) ? `${text}; ${fix}` : text
}
