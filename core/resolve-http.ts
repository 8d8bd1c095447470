// The config's `http` with its defaults, in bytes and milliseconds.
import { parseDuration, parseSize } from './config/units.ts'
import type { HttpSettings, ResolvedHttp } from './define-config.ts'

export const HTTP_DEFAULTS = {
  host: '127.0.0.1',
  port: 3000,
  maxBodySize: '4mb',
  keepAliveTimeout: '5s',
  requestTimeout: '60s',
} as const

export function resolveHttp(given: HttpSettings = {}): ResolvedHttp {
  const { host, port, maxBodySize, keepAliveTimeout, requestTimeout } = { ...HTTP_DEFAULTS, ...given }
  return {
    host,
    port,
    publicUrl: given.publicUrl,
    maxBodySize: parseSize(maxBodySize),
    keepAliveTimeout: parseDuration(keepAliveTimeout),
    requestTimeout: parseDuration(requestTimeout),
    allowedHosts: given.allowedHosts ?? [],
    allowedOrigins: given.allowedOrigins ?? [],
    trustProxy: given.trustProxy ?? false,
  }
}
