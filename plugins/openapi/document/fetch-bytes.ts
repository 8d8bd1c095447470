// Fetches documents from URLs, from allowed addresses only and without redirects.
import type { Services } from '../../../core/internal.ts'
import { errorText } from '../../../core/plugin.ts'
import { headerOf, type Stoppable, send } from '../request-send.ts'

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
  async ({ origin, pathname, search }, maxBytes) => {
    const connections = await open()
    let timer: NodeJS.Timeout | undefined
    const begin = (exchange: Stoppable) => {
      timer = setTimeout(() => exchange.stop(new Error(`no response within ${TIMEOUT / 1_000} s`)), TIMEOUT)
    }
    try {
      const dispatcher = connections.agentFor(origin)
      const request = { dispatcher, origin, path: pathname + search, method: 'GET', headers: [...HEADERS], body: null }
      const { status, headers, body, isCut } = await send(request, maxBytes, { begin })
      if (status >= 300 && status < 400) {
        throw new Error(`HTTP ${status}, redirect to ${headerOf(headers, 'location')}: use that URL`)
      }
      if (status !== 200) throw new Error(`HTTP ${status}`)
      if (isCut) throw new Error(`more than ${Math.floor(maxBytes / 1_024)} kB`)
      return body
    } catch (error) {
      throw new Error(withFix(error), { cause: error })
    } finally {
      clearTimeout(timer)
      await connections.close()
    }
  }

/** Adds advice on how to allow a refused address. */
function withFix(error: unknown): string {
  const { fix, code } = error as { readonly fix?: unknown; readonly code?: unknown }
  const text = errorText(error) || `${code}`
  return typeof fix === 'string' && !text.includes(fix) ? `${text}; ${fix}` : text
}
