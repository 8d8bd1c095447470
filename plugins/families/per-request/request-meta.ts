// Reads `_meta` of a request without handshake: version, client and log level (basic, "Per-request protocol fields").
import { HostError, type Implementation, type LogLevel } from '../../../core/index.ts'
import { isObject, type Revision } from '../../../core/plugin.ts'
import {
  type ClientFacts,
  clientInfoProblem,
  isHandshakeRevision,
  LOG_LEVELS,
  META,
  shown,
  sizeFault,
  type ValidMessage,
} from '../../../core/transport.ts'

/** `version` is not checked yet. */
export interface RequestMeta {
  readonly version: string
  readonly client: ClientFacts
  readonly logLevel: LogLevel | undefined
}

/** Reads `_meta`. Throws `invalidMeta`. */
export function readRequestMeta(meta: unknown): RequestMeta {
  const refuse = (detail: string) => new HostError('invalidMeta', { detail })
  if (!isObject(meta)) throw refuse('`params._meta` is missing')
  const version = meta[META.protocolVersion]
  const capabilities = meta[META.clientCapabilities]
  const info = meta[META.clientInfo]
  const logLevel = meta[META.logLevel]
  const tooLarge = sizeFault(META.clientInfo, info) ?? sizeFault(META.clientCapabilities, capabilities)
  if (tooLarge !== undefined) throw refuse(tooLarge)
  if (typeof version !== 'string') throw refuse(`\`_meta\` needs ${META.protocolVersion}`)
  if (!isObject(capabilities)) throw refuse(`\`_meta\` needs ${META.clientCapabilities}, an object`)
  if (info !== undefined && !isObject(info)) throw refuse(`${META.clientInfo} must be an object`)
  const problem = info === undefined ? undefined : clientInfoProblem(info)
  if (problem !== undefined) throw refuse(problem)
  if (logLevel !== undefined && !LOG_LEVELS.includes(logLevel as LogLevel)) {
    throw refuse(`${META.logLevel} must be one of ${LOG_LEVELS.join(', ')}`)
  }
  return {
    version,
    client: { info: info as Implementation | undefined, capabilities },
    logLevel: logLevel as LogLevel | undefined,
  }
}

/** True if `_meta` names a version without handshake, so that the message needs no session. */
export function namesOwnVersion(message: ValidMessage): boolean {
  const meta = message.kind === 'response' ? undefined : message.params['_meta']
  const named = isObject(meta) ? meta[META.protocolVersion] : undefined
  return named !== undefined && !isHandshakeRevision(named)
}

export const unsupported = (requested: string, supported: readonly Revision[]): HostError =>
  new HostError('unsupportedVersion', { detail: shown(requested), data: { supported, requested: shown(requested) } })
