// What an older client said in `initialize`, what the server says in `server/discover`, and how each is told to the other.
import { isObject } from '../../../core/mcp/is-object.ts'
import { type ClientCapabilities, type LogLevel, META } from '../../../core/mcp/protocol.ts'
import {
  isHandshakeRevision,
  isModernRevision,
  LATEST_HANDSHAKE,
  type Revision,
  type RevisionRules,
  rulesOf,
} from '../../../core/mcp/revisions.ts'
import type { Fields } from '../messages.ts'

/** Both sides of a conversation, and the revision that each speaks. */
export interface Opening {
  /** Of the client: the one that it asked for, or the newest of its kind. */
  readonly revision: Revision
  readonly rules: RevisionRules
  readonly clientInfo: Fields | undefined
  readonly clientCapabilities: ClientCapabilities
  /** Of the server. */
  readonly version: Revision
  readonly capabilities: Fields
  /** The answer to `initialize`. */
  readonly initialized: Fields
}

const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {})

/** Tasks of 2025-11-25 are not those of 2026-07-28. */
function withoutTasks({ tasks: _, ...capabilities }: Fields): Fields {
  return capabilities
}

/** The newest revision that needs no `initialize`; undefined where the server takes one, or speaks nothing that is known. */
export function versionIn(discovered: Fields): Revision | undefined {
  const versions: readonly unknown[] = Array.isArray(discovered['supportedVersions'])
    ? discovered['supportedVersions']
    : []
  return versions.some(isHandshakeRevision) ? undefined : versions.find(isModernRevision)
}

/** `fallback`: the server's name where it does not say one. */
export function createOpening(said: Fields, discovered: Fields, version: Revision, fallback: string): Opening {
  const asked = said['protocolVersion']
  const revision = isHandshakeRevision(asked) ? asked : LATEST_HANDSHAKE
  const capabilities = withoutTasks(fieldsOf(discovered['capabilities']))
  const { [META.serverInfo]: serverInfo } = fieldsOf(discovered['_meta'])
  const { instructions } = discovered
  return {
    revision,
    rules: rulesOf(revision),
    clientInfo: isObject(said['clientInfo']) ? said['clientInfo'] : undefined,
    clientCapabilities: withoutTasks(fieldsOf(said['capabilities'])),
    version,
    capabilities,
    initialized: {
      protocolVersion: revision,
      capabilities,
      serverInfo: isObject(serverInfo) ? serverInfo : { name: fallback, version: 'unknown' },
      ...(typeof instructions === 'string' && { instructions }),
    },
  }
}

type Speaker = Pick<Opening, 'version' | 'clientInfo' | 'clientCapabilities'>

/** The parameters of a request, with what each one has to say of its sender (2026-07-28 basic, "_meta"). */
export function speakFor(
  { version, clientInfo, clientCapabilities }: Speaker,
  params: Fields,
  logLevel?: LogLevel,
): Fields {
  const _meta = {
    ...fieldsOf(params['_meta']),
    [META.protocolVersion]: version,
    ...(clientInfo && { [META.clientInfo]: clientInfo }),
    [META.clientCapabilities]: clientCapabilities,
    ...(logLevel !== undefined && { [META.logLevel]: logLevel }),
  }
  return { ...params, _meta }
}

/** Of `initialize` alone, before anything is known of the server. */
export const speakerIn = (said: Fields, version: Revision): Speaker => ({
  version,
  clientInfo: isObject(said['clientInfo']) ? said['clientInfo'] : undefined,
  clientCapabilities: withoutTasks(fieldsOf(said['capabilities'])),
})
