// How a client learns whom it talks to: `server/discover` (2026-07-28) and `initialize` (older revisions).
import { type Call, isObject } from '../call.ts'
import { HostError } from '../errors.ts'
import { HANDSHAKE_REVISIONS, isHandshakeRevision, META } from '../protocol.ts'
import { LIST_TTL } from '../view.ts'

/** 2026-07-28 server/discover. */
export function discover({ view, session }: Call): object {
  const { serverInfo, capabilities, instructions, cacheScope } = view
  return {
    resultType: 'complete',
    supportedVersions: session.route.revisions,
    capabilities,
    ...(instructions !== undefined && { instructions }),
    ttlMs: LIST_TTL,
    cacheScope,
    _meta: { [META.serverInfo]: serverInfo },
  }
}

/** 2025-11-25 basic/lifecycle, "Initialization": the asked-for revision where it is ours, else the newest with a handshake. */
export function initialize({ params, view, session }: Call): object {
  const { protocolVersion, clientInfo, capabilities } = params
  if (typeof protocolVersion !== 'string' || !isObject(clientInfo) || !isObject(capabilities)) {
    throw new HostError('invalidParams', { detail: 'initialize needs protocolVersion, clientInfo and capabilities' })
  }
  const { logging, ...others } = view.capabilities
  return {
    protocolVersion: isHandshakeRevision(protocolVersion) ? protocolVersion : HANDSHAKE_REVISIONS[0],
    // Without a session nothing remembers a level set by `logging/setLevel`.
    capabilities: session.sessionId === undefined ? others : view.capabilities,
    serverInfo: view.serverInfo,
    ...(view.instructions !== undefined && { instructions: view.instructions }),
  }
}
