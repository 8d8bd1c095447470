// Canonicalizes the URL of a request to compare it with `htu` (RFC 9449 section 4.3, RFC 3986 section 6.2).
import { canonicalPath, isLoopback, parseHost } from '../../../core/auth.ts'
import type { ResolvedHttp } from '../../../core/internal.ts'
import type { HostContext } from '../../../core/plugin.ts'

const MAX_TARGET = 2_048

const withoutRoot = (path: string) => (path === '/' ? '' : path)

/** Returns origin and path without default port and trailing slash; undefined for an invalid URL. */
export function canonicalTarget(url: unknown): string | undefined {
  // `URL` would repair white space, control characters and backslashes.
  if (typeof url !== 'string' || url.length > MAX_TARGET || !/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(url)) {
    return undefined
  }
  if (!URL.canParse(url)) return undefined
  const { origin, pathname, username, password } = new URL(url)
  const path = username === '' && password === '' ? canonicalPath(pathname) : undefined
  return path === undefined ? undefined : `${origin}${withoutRoot(path)}`
}

const bare = (address: string) => address.replace(/^::ffff:/, '').replace(/^\[|\]$/g, '')

function isOwn(header: string, scheme: string, { socket }: HostContext['req'], allowed: ReadonlySet<string>): boolean {
  const host = parseHost(header)
  if (!host || !URL.canParse(`${scheme}://${host.full}`)) return false
  if (host.full !== host.name && allowed.has(host.full)) return true
  const { port } = new URL(`${scheme}://${host.full}`)
  // An allowed name without a port has the default port, for example at a proxy.
  if (port === '' && allowed.has(host.name)) return true
  const hostPort = port === '' ? (scheme === 'https' ? 443 : 80) : Number(port)
  const isOther =
    host.name !== 'localhost' && isLoopback(host.name) && bare(host.name) !== bare(socket.localAddress ?? '')
  return hostPort === socket.localPort && !isOther
}

export function createTargets({
  publicUrl,
  allowedHosts,
}: Pick<ResolvedHttp, 'publicUrl' | 'allowedHosts'>): (ctx: HostContext) => readonly string[] {
  const allowed = new Set(allowedHosts.map(host => host.toLowerCase()))
  const base = publicUrl === undefined ? undefined : (canonicalTarget(publicUrl.split(/[?#]/, 1)[0]) ?? '')
  return ({ state, req }) => {
    const path = withoutRoot(state.path ?? '/')
    if (base !== undefined) return [`${base}${path}`]
    const scheme = 'encrypted' in req.socket && req.socket.encrypted === true ? 'https' : 'http'
    const hosts = state.hosts.filter(host => host !== undefined && isOwn(host, scheme, req, allowed))
    return hosts.flatMap(host => canonicalTarget(`${scheme}://${host}${path}`) ?? [])
  }
}
