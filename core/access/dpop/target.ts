// Which address a proof is for (RFC 9449 section 4.3, item 9): the claim `htu` and the request's own, both in one canonical
// form, without query and fragment (RFC 3986 section 6.2.2 and 6.2.3).
import type { ResolvedHttp } from '../../http/http-settings.ts'
import { canonicalPath } from '../../http/request-target.ts'
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

/**
 * The canonical addresses of a request. With `http.publicUrl` the one under it; without it each that its Host names, which
 * the host's guard has let through.
 */
export function createTargets({ publicUrl }: Pick<ResolvedHttp, 'publicUrl'>): (ctx: HostContext) => readonly string[] {
  const base = publicUrl === undefined ? undefined : (canonicalTarget(publicUrl.split(/[?#]/, 1)[0]) ?? '')
  return ({ state, req }) => {
    const path = plain(state.path ?? '/')
    if (base !== undefined) return [`${base}${path}`]
    const scheme = 'encrypted' in req.socket && req.socket.encrypted === true ? 'https' : 'http'
    return state.hosts.flatMap(host => canonicalTarget(`${scheme}://${host ?? ''}${path}`) ?? [])
  }
}
