// `server/discover` (2026-07-28) and `initialize` (earlier versions).
import type { Call } from '../calls/call.ts'
import { checkClientInfo } from '../client-limits.ts'
import { LIST_TTL } from '../routes/view.ts'
import { META, type ServerCapabilities } from '../wire/protocol.ts'

function withChanges(capabilities: ServerCapabilities): ServerCapabilities {
  const { tools, resources, prompts } = capabilities
  return {
    ...capabilities,
    ...(tools && { tools: { ...tools, listChanged: true } }),
    ...(resources && { resources: { ...resources, listChanged: true, subscribe: true } }),
    ...(prompts && { prompts: { ...prompts, listChanged: true } }),
  }
}

/** 2026-07-28 server/discover. */
export function discover({ view, offer }: Call): object {
  const { serverInfo, capabilities, instructions, cacheScope } = view
  return {
    resultType: 'complete',
    supportedVersions: offer.route.revisions,
    capabilities: offer.route.listen ? withChanges(capabilities) : capabilities,
    ...(instructions !== undefined && { instructions }),
    ttlMs: LIST_TTL,
    cacheScope,
    _meta: { [META.serverInfo]: serverInfo },
  }
}

/** 2025-11-25 basic/lifecycle, "Initialization". The transport negotiates the version. */
export function initialize({ params, view, session, revision }: Call): object {
  checkClientInfo(params)
  // Without a session, log levels are not stored and changes cannot be delivered.
  const { logging, ...others } = view.capabilities
  return {
    protocolVersion: revision,
    capabilities: session === undefined ? others : withChanges(view.capabilities),
    serverInfo: view.serverInfo,
    ...(view.instructions !== undefined && { instructions: view.instructions }),
  }
}
