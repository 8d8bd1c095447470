// Creates connection targets: a command, or a URL with headers and an access token.
import type { CallContext } from '../../core/index.ts'
import type { InternalHost, Services } from '../../core/internal.ts'
import type { Call } from '../../core/plugin.ts'
import { createPool, type Target } from '../../remote/index.ts'
import {
  type Authorization,
  createTokenSource,
  isPerCaller,
  type Logins,
  readSecret,
} from '../families/credentials/index.ts'
import type { HttpSettings, ServerSettings } from './settings.ts'

export type UserHeaders = Readonly<Record<string, string>> | undefined

/** The credentials of one call. */
export interface CallCredentials {
  /** The caller's token; undefined if the connection has the token. */
  readonly headers?: UserHeaders
  /** Called after a 401 response, or a 403 response that requires more scopes. True if a repetition can succeed. */
  invalidateToken(stepUp?: string): boolean
}

export type Targets = ReturnType<typeof createHttpTargets>

async function readHeaders({ headers }: HttpSettings, what: string): Promise<Record<string, string>> {
  const entries = Object.entries(headers).map(
    async ([name, source]) => [name, await readSecret(source, `${what}.headers['${name}']`)] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

export interface TokenHost extends Pick<InternalHost, 'clock'> {
  readonly services: Pick<Services, 'createTokenClient'>
  /** Logins of callers, for servers with `login`. */
  readonly logins?: Logins | undefined
}

const NO_HEADERS: Readonly<Record<string, string>> = {}

const toHeaders = ({ headers }: Authorization): Record<string, string> =>
  Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? '']] : [])))

function createHttpTargets(http: HttpSettings, settings: ServerSettings, host: TokenHost | undefined) {
  const { at, name, sessions } = settings
  const what = at.join('.')
  const { url, tls, auth, forwardHeaders } = http
  const { origin } = new URL(url)
  const login = host?.logins && { logins: host.logins, id: name }
  const parts = host && { path: `${what}.auth`, apiUrl: url, services: () => host.services, clock: host.clock, login }
  // Only the serving host has users; other hosts skip logins.
  const source = auth && parts && (auth.kind !== 'login' || login) ? createTokenSource(auth, parts) : undefined
  const hostSource = isPerCaller(auth) ? undefined : source
  const isFixed = !hostSource && Object.values(http.headers).every(one => typeof one === 'string')
  let pool: ReturnType<typeof createPool> | undefined
  let current: Record<string, string> | undefined
  let used: Authorization | undefined

  async function renew() {
    if (isFixed && current) return
    const headers = await readHeaders(http, what)
    // The token belongs to the host, so no caller is involved.
    used = await hostSource?.authorize({ ctx: undefined as never, method: 'POST', url })
    current = { ...headers, ...(used && toHeaders(used)) }
  }
  async function authorize(ctx: CallContext): Promise<CallCredentials | undefined> {
    await renew()
    if (!source || hostSource) return undefined
    const own = await source.authorize({ ctx, method: 'POST', url })
    return { headers: toHeaders(own), invalidateToken: stepUp => source.invalidateToken(own, { origin, stepUp }) }
  }
  const invalidateToken = () => used !== undefined && hostSource?.invalidateToken(used, { origin }) === true

  return {
    /** Called after a 401 response to the connection for lists. Returns true if a retry with a new token can succeed. */
    invalidateToken,
    /** Creates a target. `userHeaders`: returns the headers of the session's caller. */
    async target(userHeaders?: () => UserHeaders): Promise<Target> {
      await renew()
      pool ??= createPool(url, { tls })
      const headers = () => current ?? NO_HEADERS
      // Callers share the connection for lists if the server has no sessions.
      const sessionCookies = !userHeaders && sessions === 'auto'
      return { url, headers, sessionCookies, ...(userHeaders && { userHeaders }), dispatcher: await pool }
    },
    /** Renews changing headers and the token of a call. Undefined if the connection has the credentials. */
    authorize: (ctx: CallContext) => (isFixed && !source && current ? undefined : authorize(ctx)),
    /** Returns the headers of the caller to send with its call. Undefined if the server gets no headers of callers. */
    forwarded({ headers }: Call): UserHeaders {
      if (forwardHeaders.length === 0) return undefined
      const found = forwardHeaders.flatMap(name => {
        const value = headers[name.toLowerCase()]
        return typeof value === 'string' ? [[name, value] as const] : []
      })
      return Object.fromEntries(found)
    },
    async close(): Promise<void> {
      await (await pool)?.close()
    },
  }
}

/** `host`: for servers with `auth`. */
export function createTargets(settings: ServerSettings, host?: TokenHost): Targets {
  const { http, command } = settings
  if (http) return createHttpTargets(http, settings, host)
  return {
    target: async () => command as Target,
    authorize: () => undefined,
    invalidateToken: () => false,
    forwarded: () => undefined,
    close: async () => undefined,
  }
}
