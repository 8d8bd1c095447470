// Options, checks and startup of plugins for operators, with a port or token of their own.
import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { LISTEN_ADDRESS } from '../../../core/auth.ts'
import { count, explainListen, type InternalHost, words } from '../../../core/internal.ts'
import { StartError } from '../../../core/plugin.ts'

export const LOOPBACK = '127.0.0.1'

/** Minimum characters of a token; a shorter token can be guessed. */
const MIN_TOKEN_LENGTH = 16

/** `content`: what the port serves. `needs`: options that another address requires. */
export const portOptions = (port: number, content: string, needs: string) =>
  ({
    port: count(`Port of ${content}. 0 selects a free port, which is logged.`, {
      minimum: 0,
      maximum: 65_535,
      default: port,
    }),
    host: words(`Address to listen on. An address other than loopback requires ${needs}.`, {
      default: LOOPBACK,
      ...LISTEN_ADDRESS,
    }),
  }) as const

export function checkToken({ config, report }: InternalHost, code: string, token: string | undefined) {
  if (token === undefined || token.length >= MIN_TOKEN_LENGTH) return
  const what = `is shorter than ${MIN_TOKEN_LENGTH} characters; make one with: openssl rand -base64 32`
  report(new StartError(code, what, { at: [...config.at, 'token'] }))
}

const digest = (text: string) => createHash('sha256').update(text).digest()

export function createTokenCheck(token: string): (headers: IncomingHttpHeaders) => boolean {
  const expected = digest(token)
  return ({ authorization = '' }) => {
    const [, token = ''] = /^bearer +(.+)$/i.exec(authorization) ?? []
    return timingSafeEqual(digest(token), expected)
  }
}

const ANY_ADDRESS = ['0.0.0.0', '::']

const normalizeHost = (address: string) => (address === 'localhost' ? LOOPBACK : address)

interface ListenSettings {
  readonly code: string
  readonly port: number
  readonly host: string
  /** True: worker processes do not share the port. */
  readonly isExclusive?: boolean
}

/** Reports the host's own port. Otherwise, the conflict would be detected only when the plugin listens. */
export function checkPort({ config: { at, http }, report }: InternalHost, { code, port, host }: ListenSettings) {
  const isSame = http.port === port && port !== 0
  const overlaps =
    [host, http.host].some(one => ANY_ADDRESS.includes(one)) || normalizeHost(host) === normalizeHost(http.host)
  if (!isSame || !overlaps) return
  const what = `${port} is the host's own port (http.port); use another port for this plugin, such as ${port + 1}`
  report(new StartError(code, what, { at: [...at, 'port'] }))
}

export const formatAuthority = (address: string, port: number) =>
  `${address.includes(':') ? `[${address}]` : address}:${port}`

/** Resolves once the server listens; rejects with a StartError. Does not keep the process alive. */
export function startListening(
  server: Server,
  at: InternalHost['config']['at'],
  { code, port, host, isExclusive = false }: ListenSettings,
  failed: (error: unknown) => void,
): Promise<AddressInfo> {
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const why = explainListen(cause, host, port, 'set another `port` (0: any free port)')
      reject(new StartError(code, why, { at: [...at, 'port'], exitCode: 1, cause }))
    })
    server.listen({ port, host, exclusive: isExclusive }, () => {
      server.on('error', failed)
      resolve(server.address() as AddressInfo)
    })
  })
}
