// Refuses requests that name a host or come from a page that is not ours: what stops a website from calling a server
// on its visitor's own machine (basic/transports/streamable-http, "Security & Endpoint").

import { HostError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'
import { parseHost, shownUrl } from './request-target.ts'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** True for an address to bind that only this machine reaches. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host)

/** True for a name of this machine, such as every name below `localhost` (RFC 6761 section 6.3). */
const isLoopbackName = (name: string) => LOOPBACK_NAMES.has(name) || name.endsWith('.localhost') || isLoopback(name)

/** The origin of a URL as browsers write it, or undefined. */
function originOf(url: string): URL | undefined {
  if (!URL.canParse(url)) return undefined
  const parsed = new URL(url)
  return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed : undefined
}

/** What a request says of where it goes and where it comes from. */
export interface Asked {
  /** Every host that it names; undefined stands for a header that is not there. */
  readonly hosts: ReadonlyArray<string | undefined>
  readonly origin?: string | undefined
  /** Knows the origins that the route's CORS policy adds. */
  readonly alsoAllowed?: ((origin: string) => boolean) | undefined
}

/**
 * The guard for these settings. On a loopback bind: loopback names and origins, `publicUrl`'s, and the lists. On any
 * other: `publicUrl`'s and the lists; with neither, every Host passes, and no request that carries an Origin.
 */
export function createGuard(http: ResolvedHttp) {
  const loopback = isLoopback(http.host)
  const publicUrl = http.publicUrl === undefined ? undefined : new URL(http.publicUrl)
  const hosts = new Set([...http.allowedHosts.map(host => host.toLowerCase()), ...(publicUrl ? [publicUrl.host] : [])])
  if (publicUrl) hosts.add(publicUrl.hostname)
  const origins = new Set([...http.allowedOrigins.map(origin => originOf(origin)?.origin ?? origin)])
  if (publicUrl) origins.add(publicUrl.origin)

  function hostAllowed(header: string | undefined): boolean {
    if (!loopback && hosts.size === 0) return true
    const host = header === undefined ? undefined : parseHost(header)
    if (!host) return false
    return hosts.has(host.name) || hosts.has(host.full) || (loopback && isLoopbackName(host.name))
  }

  function originAllowed(origin: string): boolean {
    if (origins.has(origin)) return true
    const parsed = originOf(origin)
    return loopback && parsed !== undefined && parsed.origin === origin && isLoopbackName(parsed.hostname)
  }

  /** Throws `hostNotAllowed` or `originNotAllowed`, whose cause names the config key that would allow it. */
  return function guard({ hosts: asked, origin, alsoAllowed }: Asked): void {
    for (const name of asked) {
      if (hostAllowed(name)) continue
      const shown = name === undefined ? 'the request names no host' : shownUrl(name)
      const cause = `to serve it, add ${JSON.stringify(shown)} to http.allowedHosts, or set http.publicUrl`
      throw new HostError('hostNotAllowed', { detail: shown, cause })
    }
    if (origin !== undefined && !originAllowed(origin) && !alsoAllowed?.(origin)) {
      const shown = shownUrl(origin)
      const cause = `to let its pages call, add ${JSON.stringify(shown)} to http.allowedOrigins`
      throw new HostError('originNotAllowed', { detail: shown, cause })
    }
  }
}
