// Says once which revision a message speaks, or refuses it. Nothing behind this asks again.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError, type Implementation, isObject, type LogLevel, type Revision } from '../../core/index.ts'
import {
  ASSUMED_REVISION,
  type ClientFacts,
  clientInfoProblem,
  isHandshakeRevision,
  isModernRevision,
  LATEST_HANDSHAKE,
  LOG_LEVELS,
  META,
  type Message,
  MODERN_REVISION,
  shown,
  sizeFault,
  type ValidMessage,
} from '../../core/transport.ts'

/** A message's revision, and what its sender says of itself. */
export interface Speech {
  readonly revision: Revision
  readonly client: ClientFacts
  readonly logLevel: LogLevel | undefined
}

type Spoken = Extract<Message, { kind: 'request' | 'notification' }>

const UNKNOWN_CLIENT: ClientFacts = { info: undefined, capabilities: {} }

/** The revision that the version header names, as far as it can be told without the body. */
export const versionOf = (headers: IncomingHttpHeaders): string | undefined => {
  const value = headers['mcp-protocol-version']
  return Array.isArray(value) ? value.join(', ') : value
}

export const unsupported = (requested: string, supported: readonly Revision[]): HostError =>
  new HostError('unsupportedVersion', { detail: shown(requested), data: { supported, requested: shown(requested) } })

/** The `_meta` of 2026-07-28 (basic, "Per-request protocol fields"). Throws `invalidMeta` for what is missing. */
function readMeta(meta: unknown): Omit<Speech, 'revision'> & { readonly version: string } {
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

/** A request that carries its own version. Throws `invalidMeta`, `headerMismatch` or `unsupportedVersion`. */
function readModern(message: Spoken, header: string | undefined, supported: readonly Revision[]): Speech {
  const meta = message.params['_meta']
  // A notification's metadata is not defined by this revision: its header alone says what it is.
  if (message.kind === 'notification') {
    if (header !== undefined && !isModernRevision(header)) throw unsupported(header, supported)
    return { revision: header ?? MODERN_REVISION, client: UNKNOWN_CLIENT, logLevel: undefined }
  }
  const named = isObject(meta) ? meta[META.protocolVersion] : undefined
  if (named === undefined && header !== undefined && !isModernRevision(header)) throw unsupported(header, supported)
  if (named === undefined && message.method === 'initialize') {
    // Whoever opens a session is of an older revision: this one's `_meta` is not what it lacks.
    const detail = `MCP-Protocol-Version is ${header}, which has no initialize; leave the header out`
    throw new HostError('headerMismatch', { detail })
  }
  const { version, client, logLevel } = readMeta(meta)
  if (header !== version) {
    const detail = `MCP-Protocol-Version is ${shown(header ?? 'missing')}, the body says ${shown(version)}`
    throw new HostError('headerMismatch', { detail })
  }
  if (!isModernRevision(version) || !supported.includes(version)) throw unsupported(version, supported)
  return { revision: version, client, logLevel }
}

/** A message of an older revision, where there are no sessions. Throws `unsupportedVersion`. */
function readLegacy(message: Spoken, header: string | undefined, supported: readonly Revision[]): Speech {
  const opens = message.method === 'initialize'
  const asked = opens ? message.params['protocolVersion'] : header
  const revision = isHandshakeRevision(asked) ? asked : opens ? LATEST_HANDSHAKE : ASSUMED_REVISION
  if (!supported.includes(revision)) throw unsupported(typeof asked === 'string' ? asked : revision, supported)
  return { revision, client: UNKNOWN_CLIENT, logLevel: undefined }
}

/** Modern is what names a version without a handshake, in `_meta` or in the header; everything else is older. */
export function isModern(message: ValidMessage, headers: IncomingHttpHeaders): boolean {
  const header = versionOf(headers)
  // `initialize` negotiates in its body: only a revision that has no handshake is told by its header.
  const opens = message.kind === 'request' && message.method === 'initialize' && !isModernRevision(header)
  if (header !== undefined && !isHandshakeRevision(header) && !opens) return true
  const meta = message.kind === 'response' ? undefined : message.params['_meta']
  const named = isObject(meta) ? meta[META.protocolVersion] : undefined
  return named !== undefined && !isHandshakeRevision(named)
}

/** What a message says of itself, by what `isModern` said of it. Throws `invalidMeta`, `headerMismatch` or `unsupportedVersion`. */
export function classify(
  message: Spoken,
  modern: boolean,
  headers: IncomingHttpHeaders,
  supported: readonly Revision[],
): Speech {
  const header = versionOf(headers)
  return modern ? readModern(message, header, supported) : readLegacy(message, header, supported)
}
