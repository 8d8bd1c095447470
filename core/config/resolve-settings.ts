// The config's `http`, `sessions` and `tools` with their defaults, in bytes and milliseconds.

import type { ResolvedHttp } from '../kernel/http-settings.ts'
import { parseDuration, parseSize } from '../mcp/units.ts'
import type { SessionBounds } from '../sessions/session-bounds.ts'
import type { Config, HttpSettings } from './define-config.ts'

export const HTTP_DEFAULTS = {
  host: '127.0.0.1',
  port: 3000,
  maxBodySize: '4mb',
  keepAliveTimeout: '5s',
  requestTimeout: '60s',
  writeTimeout: '30s',
} as const

export function resolveHttp(given: HttpSettings = {}): ResolvedHttp {
  const { host, port, maxBodySize, keepAliveTimeout, requestTimeout, writeTimeout } = { ...HTTP_DEFAULTS, ...given }
  return {
    host,
    port,
    publicUrl: given.publicUrl,
    maxBodySize: parseSize(maxBodySize),
    keepAliveTimeout: parseDuration(keepAliveTimeout),
    requestTimeout: parseDuration(requestTimeout),
    writeTimeout: parseDuration(writeTimeout),
    allowedHosts: given.allowedHosts ?? [],
    allowedOrigins: given.allowedOrigins ?? [],
    trustProxy: given.trustProxy === true ? 1 : given.trustProxy || false,
  }
}

export const SESSION_DEFAULTS = {
  idleTimeout: '2h',
  maxIdle: 10_000,
  maxCallsPerSession: 32,
  maxCallsPerOwner: 256,
} as const

export function resolveSessions(given: Config['sessions'] = {}): SessionBounds {
  const { idleTimeout, ...bounds } = { ...SESSION_DEFAULTS, ...given }
  return { idleTimeout: parseDuration(idleTimeout), ...bounds, maxPerOwner: given.maxPerOwner }
}

export const TOOL_DEFAULTS = { fetchTimeout: '30s', callTimeout: 'off', stallWarning: '200ms' } as const

/** Milliseconds; undefined: off. */
export function resolveTools(given: Config['tools'] = {}) {
  const { fetchTimeout, callTimeout, stallWarning } = { ...TOOL_DEFAULTS, ...given }
  return {
    fetchTimeout: parseDuration(fetchTimeout),
    callTimeout: callTimeout === 'off' ? undefined : parseDuration(callTimeout),
    stallWarning: stallWarning === 'off' ? undefined : parseDuration(stallWarning),
  }
}
