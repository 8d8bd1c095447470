// Resolves `http`, `sessions` and `tools` of the config to bytes and milliseconds.

import { errorText, StartError } from '../http/errors.ts'
import type { ResolvedHttp } from '../http/guard.ts'
import { resolveIsolate } from '../mcp/definitions/isolation-limits.ts'
import { parseDuration, parseSize } from '../mcp/units.ts'
import type { FilledHttpSettings, FilledSessionLimits, FilledToolLimits } from './define-config.ts'

export const resolveHttp = ({ publicUrl, trustProxy, tls, ...given }: FilledHttpSettings): ResolvedHttp => ({
  ...given,
  publicUrl,
  tls: tls !== undefined,
  maxBodySize: parseSize(given.maxBodySize),
  keepAliveTimeout: parseDuration(given.keepAliveTimeout),
  requestTimeout: parseDuration(given.requestTimeout),
  writeTimeout: parseDuration(given.writeTimeout),
  trustProxy: trustProxy === true ? 1 : trustProxy,
})

export const resolveSessions = ({ idleTimeout, maxPerOwner, ...limits }: FilledSessionLimits) => ({
  ...limits,
  idleTimeout: parseDuration(idleTimeout),
  maxPerOwner,
})

function isolationLimitsOf(glob: string, isolate: Parameters<typeof resolveIsolate>[0]) {
  try {
    return resolveIsolate(isolate)
  } catch (cause) {
    throw new StartError('MH1013', errorText(cause), { cause, at: ['tools', 'limits', glob, 'isolate'] })
  }
}

export const resolveTools = ({ fetchTimeout, callTimeout, limits = {} }: FilledToolLimits) => ({
  fetchTimeout: parseDuration(fetchTimeout),
  callTimeout: callTimeout === 'off' ? undefined : parseDuration(callTimeout),
  rules: Object.entries(limits).map(([glob, { timeout, concurrency, isolate }]) => ({
    glob,
    timeout: timeout === undefined ? undefined : parseDuration(timeout),
    concurrency,
    isolate: isolationLimitsOf(glob, isolate),
  })),
})
