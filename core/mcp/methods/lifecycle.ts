// How a client learns whom it talks to: `server/discover` (2026-07-28) and `initialize` (older revisions).
import type { Call } from '../call.ts'
import { checkClientFacts } from '../client-limits.ts'
import { META, type ServerCapabilities } from '../protocol.ts'
import { LIST_TTL } from '../view.ts'

/** What a client may count on once changes can reach it: a session, or a route with `subscriptions/listen`. */
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

/** 2025-11-25 basic/lifecycle, "Initialization": the revision is the one that its transport negotiated. */
export function initialize({ params, view, session, revision }: Call): object {
  checkClientFacts(params)
  // Without a session nothing remembers a level set by `logging/setLevel`, and no change reaches the client.
  const { logging, ...others } = view.capabilities
  return {
    protocolVersion: revision,
    capabilities: session === undefined ? others : withChanges(view.capabilities),
    serverInfo: view.serverInfo,
    ...(view.instructions !== undefined && { instructions: view.instructions }),
  }
}
