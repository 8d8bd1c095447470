// Which address a proof is for (RFC 9449 section 4.3, item 9): the claim `htu` and the request's own, both in one canonical
// form, without query and fragment (RFC 3986 section 6.2.2 and 6.2.3).
import { isLoopback } from '../../http/guard.ts'
import type { ResolvedHttp } from '../../http/http-settings.ts'
import { canonicalPath, parseHost } from '../../http/request-target.ts'
import type { HostContext } from '../../kernel/endpoint.ts'

const MAX_TARGET = 2_048

/** Origin and path in their one spelling: the scheme's own port left out, no slash at the end. Undefined for what is no such URL. */
export function canonicalTarget(url: unknown): string | undefined {
  // URL repairs the rest: white space, controls, backslashes, letters of other alphabets.
  if (typeof url !== 'string' || url.length > MAX_TARGET || !/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(url)) {
    return undefined
  }
  if (!URL.canParse(url)) return undefined
  const { origin, pathname, username, password } = new URL(url)
  const path = username === '' && password === '' ? canonicalPath(pathname) : undefined
  return path === undefined ? undefined : `${origin}${path === '/' ? '' : path}`
}

/** `''` for the root. */
const plain = (path: string) => (path === '/' ? '' : path)

const bare = (address: string) => address.replace(/^::ffff:/, '').replace(/^\[|\]$/g, '')

/** Whether this name is another address of this machine than the one that the request came to, where another server may listen. */
const isElsewhere = (name: string, local: string) =>
  name !== 'localhost' && isLoopback(name) && bare(name) !== bare(local)

/**
 * Whether a host that a request names is this one and no other: whoever sends a request names what it likes, so that another
 * server of this machine, or of this name, could pass on what was sent to it. `allowed` has names, with a port or without.
 */
function isOwn(asked: string, scheme: string, { socket }: HostContext['req'], allowed: ReadonlySet<string>): boolean {
  const host = parseHost(asked)
  if (!host || !URL.canParse(`${scheme}://${host.full}`)) return false
  if (host.full !== host.name && allowed.has(host.full)) return true
  const { port } = new URL(`${scheme}://${host.full}`)
  // A name of its own without a port: of whoever listens on the scheme's, such as a proxy.
  if (port === '' && allowed.has(host.name)) return true
  const given = port === '' ? (scheme === 'https' ? 443 : 80) : Number(port)
  return given === socket.localPort && !isElsewhere(host.name, socket.localAddress ?? '')
}

/**
 * The canonical addresses of a request. With `http.publicUrl` the one under it; without it each that its Host names, which
 * the host's guard has let through, where it has the port that this host listens on or `http.allowedHosts` says so.
 */
export function createTargets({
  publicUrl,
  allowedHosts,
}: Pick<ResolvedHttp, 'publicUrl' | 'allowedHosts'>): (ctx: HostContext) => readonly string[] {
  const allowed = new Set(allowedHosts.map(host => host.toLowerCase()))
  const base = publicUrl === undefined ? undefined : (canonicalTarget(publicUrl.split(/[?#]/, 1)[0]) ?? '')
  return ({ state, req }) => {
    const path = plain(state.path ?? '/')
    if (base !== undefined) return [`${base}${path}`]
    const scheme = 'encrypted' in req.socket && req.socket.encrypted === true ? 'https' : 'http'
    const own = state.hosts.filter(host => host !== undefined && isOwn(host, scheme, req, allowed))
    return own.flatMap(host => canonicalTarget(`${scheme}://${host}${path}`) ?? [])
  }
}
