// Creates connection targets: a command, or a URL with headers and an access token.
import type { InternalHost, Services } from '../../core/internal.ts'
import type { Call } from '../../core/plugin.ts'
import { createPool, type RequestOptions, type Target } from '../../remote/index.ts'
import { createTokenSource, readSecret } from '../families/credentials/index.ts'
import type { HttpSettings, ServerSettings } from './settings.ts'

export interface Targets {
  target(): Promise<Target>
  /** Renews changing headers. Called before each connection and call. */
  renew(): Promise<void> | undefined
  /** After a 401 response: true if a repetition with a new token can succeed. */
  refused(): boolean
  /** Returns the headers of the caller to send with its call. */
  forwarded(call: Call): Pick<RequestOptions, 'headers'>
  close(): Promise<void>
}

async function readHeaders({ headers }: HttpSettings, what: string): Promise<Record<string, string>> {
  const entries = Object.entries(headers).map(
    async ([name, source]) => [name, await readSecret(source, `${what}.headers['${name}']`)] as const,
  )
  return Object.fromEntries(await Promise.all(entries))
}

export interface TokenHost extends Pick<InternalHost, 'clock'> {
  readonly services: Pick<Services, 'createTokenClient'>
}

function createHttpTargets(http: HttpSettings, what: string, host: TokenHost | undefined): Targets {
  const { url, tls, auth, forwardHeaders } = http
  const tokenParts = host && { what: `${what}.auth`, apiUrl: url, services: () => host.services, clock: host.clock }
  const source = auth && tokenParts && createTokenSource(auth, tokenParts)
  const isFixed = !source && Object.values(http.headers).every(one => typeof one === 'string')
  let pool: ReturnType<typeof createPool> | undefined
  let current: Record<string, string> | undefined
  let used: Awaited<ReturnType<NonNullable<typeof source>['authorize']>> | undefined

  async function read() {
    const headers = await readHeaders(http, what)
    // The token belongs to the host, so there is no caller.
    used = await source?.authorize({ ctx: undefined as never, method: 'POST', url })
    const pairs = used?.headers ?? []
    for (let at = 0; at < pairs.length; at += 2) headers[pairs[at] ?? ''] = pairs[at + 1] ?? ''
    current = headers
  }
  const renew = () => (isFixed && current ? undefined : read())

  return {
    renew,
    async target() {
      await renew()
      pool ??= createPool(url, { tls })
      return { url, headers: () => current ?? {}, dispatcher: await pool }
    },
    refused: () => source !== undefined && used !== undefined && source.refused(used, { origin: new URL(url).origin }),
    forwarded({ headers }) {
      if (forwardHeaders.length === 0) return {}
      const found = forwardHeaders.flatMap(name => {
        const value = headers[name.toLowerCase()]
        return typeof value === 'string' ? [[name, value] as const] : []
      })
      return { headers: Object.fromEntries(found) }
    },
    async close() {
      await (await pool)?.close()
    },
  }
}

/** `host`: for servers with `auth`. */
export function createTargets({ http, command, at }: ServerSettings, host?: TokenHost): Targets {
  if (http) return createHttpTargets(http, at.join('.'), host)
  return {
    target: async () => command as Target,
    renew: () => undefined,
    refused: () => false,
    forwarded: () => ({}),
    close: async () => undefined,
  }
}
