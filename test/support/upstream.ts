// The client side of auth-bridge: an upstream with a provider's options, its log, and a whole login.

import type { FilledProvider } from '../../plugins/auth-bridge/options.ts'
import { createUpstream } from '../../plugins/auth-bridge/upstream/index.ts'
import {
  type LoginRequest,
  type SignedIn,
  type Upstream,
  UpstreamError,
} from '../../plugins/auth-bridge/upstream/upstream.ts'

export const CALLBACK = 'http://127.0.0.1:8080/auth/callback'

interface LogLine {
  readonly level: string
  readonly fields: object
  readonly message: string | undefined
}

/** An upstream with these options, and its log. No test reaches the default time-out. */
export function makeUpstream(options: Record<string, unknown>, { timeout = 60_000 } = {}) {
  const lines: LogLine[] = []
  const write = (level: string) => (fields: object, message?: string) => void lines.push({ level, fields, message })
  const log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  }
  const at = ['plugins', 'auth-bridge', 'provider']
  return { upstream: createUpstream(options as unknown as FilledProvider, { at, log, timeout }), lines }
}

/** A whole login; `change` edits the callback URL. */
export async function signIn(
  upstream: Upstream,
  provider: { signIn(url: string): Promise<URL> },
  { change, ...request }: Partial<LoginRequest> & { change?: (callback: URL) => void } = {},
): Promise<SignedIn> {
  const asked = { redirectUri: CALLBACK, state: 'the state of this login', ...request }
  const { url, underWay } = await upstream.startLogin(asked)
  const callback = await provider.signIn(url)
  change?.(callback)
  // Login records are stored as JSON.
  return upstream.finish(callback, JSON.parse(JSON.stringify(underWay)), asked)
}

/** The UpstreamError of a rejection; fails if there is none. */
export async function catchError(promise: Promise<unknown>): Promise<UpstreamError> {
  const thrown = await promise.then(
    value => new Error(`it gave ${JSON.stringify(value)}`),
    error => error,
  )
  if (thrown instanceof UpstreamError) return thrown
  throw thrown
}
