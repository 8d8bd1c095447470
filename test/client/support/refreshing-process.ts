// One of several programs that share a login on disk: at each `go` it sends a request and tells how that went.
import { createAuthFetch, type TokenCache } from '../../../client/index.ts'
import { createFileTokenCache } from '../../../client/node/index.ts'

export interface RefreshJob {
  readonly serverUrl: string
  readonly directory: string
  /** False takes the lock out, to see what it is for. */
  readonly locked: boolean
}

export type RefreshReport = { readonly status: number } | { readonly code: string }

const { serverUrl, directory, locked } = JSON.parse(process.argv.at(-1) ?? '{}') as RefreshJob
const { getTokens, storeTokens, withLock, leaseLogin } = createFileTokenCache(directory)
const tokenCache: TokenCache = locked
  ? { getTokens, storeTokens, withLock, leaseLogin }
  : { getTokens, storeTokens, leaseLogin }
const authFetch = createAuthFetch({
  serverUrl,
  redirectUri: 'http://localhost:3000/callback',
  interactive: 'never',
  tokenCache,
})

async function request(): Promise<RefreshReport> {
  try {
    const response = await authFetch(serverUrl, { method: 'POST', body: '{}' })
    await response.body?.cancel()
    return { status: response.status }
  } catch (error) {
    return { code: String((error as { code?: string }).code ?? error) }
  }
}

process.on('message', async () => process.send?.(await request()))
process.once('disconnect', () => process.exit())
process.send?.({ status: 0 } satisfies RefreshReport)
