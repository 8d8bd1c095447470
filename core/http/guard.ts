// Refuses foreign Host and Origin headers, so that a website cannot call a server on its visitor's machine (DNS rebinding).

import { HostError } from './errors.ts'
import type { ResolvedHttp } from './http-settings.ts'
import { parseHost, shownUrl } from './request-target.ts'

const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Whether only this machine can reach an address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host)

/** RFC 6761 section 6.3. */
const isLoopbackName = (name: string) => LOOPBACK_NAMES.has(name) || name.endsWith('.localhost') || isLoopback(name)

function originOf(url: string): URL | undefined {
  if (!URL.canParse(url)) return undefined
  const parsed = new URL(url)
  return parsed.protocol === 'http:' || parsed.protocol === 'https:' ? parsed : undefined
}

export interface Asked {
  /** Undefined for a missing header. */
  readonly hosts: ReadonlyArray<string | undefined>
  readonly origin?: string | undefined
  /** Origins of the route's CORS policy. */
  readonly alsoAllowed?: ((origin: string) => boolean) | undefined
}

/**
 * On a loopback address: loopback names, `publicUrl` and the lists are allowed. Elsewhere `publicUrl` and the lists; with
 * neither, every Host and no Origin.
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

  /** Throws `hostNotAllowed` or `originNotAllowed`; the cause names the config key to set. */
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
