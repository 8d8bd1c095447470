// Who may read more of a health page than its status: whoever has the token, and who asks from this very machine.
import { createHash, timingSafeEqual } from 'node:crypto'
import { isLoopback } from '../../core/auth.ts'
import type { HostContext, PluginHost } from '../../core/index.ts'

export interface DetailSettings {
  readonly details: 'local' | 'anyone' | 'nobody'
  readonly token?: string | undefined
}

const digest = (text: string) => createHash('sha256').update(text).digest()

/** Knows the token by `Authorization: Bearer`, in a time that tells nothing of it. */
function createBearerCheck(token: string): (ctx: HostContext) => boolean {
  const expected = digest(token)
  return ({ req }) => {
    const [, given] = /^Bearer +(\S+)$/i.exec(req.headers.authorization ?? '') ?? []
    return given !== undefined && timingSafeEqual(digest(given), expected)
  }
}

/** What proxies add to a request that they pass on. */
const OF_PROXIES = /^(?:forwarded|via|x-forwarded-.*|x-real-ip|x-client-ip|true-client-ip|cf-connecting-ip)$/

/** The host of a Host header is a name of this machine: a page of a foreign one that resolves to it is not (DNS rebinding). */
const namesLoopback = (host: string | undefined): boolean =>
  host !== undefined && isLoopback(host.toLowerCase().replace(/:\d*$/, ''))

function isLocal({ req, state }: HostContext): boolean {
  const address = req.socket.remoteAddress?.replace(/^::ffff:/, '')
  if (address === undefined || !isLoopback(address)) return false
  return state.hosts.every(namesLoopback) && !Object.keys(req.headers).some(name => OF_PROXIES.test(name))
}

/**
 * A proxy on this machine is a loopback peer as well. Where one is to be expected, and by the config none that says for whom
 * it asks, it cannot be told from people.
 */
const isHiddenProxyLikely = ({ publicUrl, trustProxy }: PluginHost['http']): boolean =>
  trustProxy === false && publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname)

/** Whether a caller may read details. */
export function createDetailRule(
  http: PluginHost['http'],
  { details, token }: DetailSettings,
): (ctx: HostContext) => boolean {
  if (details === 'anyone') return () => true
  const hasToken = token === undefined ? () => false : createBearerCheck(token)
  if (details === 'nobody' || isHiddenProxyLikely(http)) return hasToken
  return ctx => isLocal(ctx) || hasToken(ctx)
}
