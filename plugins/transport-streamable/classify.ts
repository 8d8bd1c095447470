// Says once which revision a message speaks, or refuses it. Nothing behind this asks again.
import type { IncomingHttpHeaders } from 'node:http'
import { HostError, isObject, type LogLevel, type Revision } from '../../core/index.ts'
import {
  ASSUMED_REVISION,
  type ClientFacts,
  isHandshakeRevision,
  isModernRevision,
  LATEST_HANDSHAKE,
  META,
  type Message,
  MODERN_REVISION,
  shown,
  type ValidMessage,
} from '../../core/transport.ts'
import { namesOwnVersion, readRequestMeta, unsupported } from '../families/per-request/index.ts'

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
  const { version, client, logLevel } = readRequestMeta(meta)
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
  return namesOwnVersion(message)
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
