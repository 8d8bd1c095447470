// Protocol versions and their differences, one row each. No other file names a version.
import type { ContentBlock } from './protocol.ts'

/** Differences between protocol versions. */
export interface RevisionRules {
  /** True: starts with `initialize`, with optional sessions. False: requests carry version and capabilities. */
  readonly handshake: boolean
  readonly batches: boolean
  /** Clients resume from an empty first event (basic/transports, "Resumability and Redelivery"). */
  readonly primesStreams: boolean
  /** Errors for unreadable message ids have `id: null`. */
  readonly nullErrorIds: boolean
  /** Spec: server/resources, "Error Handling". */
  readonly resourceNotFoundCode: number
  /** Output schemas and structured content must be objects. */
  readonly objectsOnly: boolean
  /** Spec: client/elicitation, "URL Mode Elicitation Requests". */
  readonly elicitationIds: boolean
  /** False: clients interpret 404 as the end of their session. */
  readonly errorsByStatus: boolean
  readonly content: ReadonlySet<ContentBlock['type']>
}

const FIRST_CONTENT = ['text', 'image', 'resource'] as const

const FIRST: RevisionRules = {
  handshake: true,
  batches: false,
  primesStreams: false,
  nullErrorIds: true,
  resourceNotFoundCode: -32002,
  objectsOnly: true,
  elicitationIds: true,
  errorsByStatus: false,
  content: new Set(FIRST_CONTENT),
}
const ALL_CONTENT: RevisionRules['content'] = new Set([...FIRST_CONTENT, 'audio', 'resource_link'])

/** Newest first. Each row lists differences from the first version. */
const ROWS = {
  '2026-07-28': {
    ...FIRST,
    handshake: false,
    nullErrorIds: false,
    resourceNotFoundCode: -32602,
    objectsOnly: false,
    elicitationIds: false,
    errorsByStatus: true,
    content: ALL_CONTENT,
  },
  '2025-11-25': { ...FIRST, primesStreams: true, nullErrorIds: false, content: ALL_CONTENT },
  '2025-06-18': { ...FIRST, content: ALL_CONTENT },
  '2025-03-26': { ...FIRST, batches: true, content: new Set([...FIRST_CONTENT, 'audio']) },
  '2024-11-05': FIRST,
} as const satisfies Record<string, RevisionRules>

/** A supported protocol version. */
export type Revision = keyof typeof ROWS

/** All protocol versions, newest first. */
export const REVISIONS = Object.keys(ROWS) as readonly Revision[]

/** Protocol versions with `initialize`, newest first. */
export const HANDSHAKE_REVISIONS = REVISIONS.filter(revision => ROWS[revision].handshake) as [Revision, ...Revision[]]

/** The newest protocol version without `initialize`. */
export const MODERN_REVISION = '2026-07-28' satisfies Revision

/** The response to `initialize` with an unknown version. */
export const LATEST_HANDSHAKE = HANDSHAKE_REVISIONS[0]

/** Assumed without a version header (2025-06-18, transports, "Protocol Version Header"). */
export const ASSUMED_REVISION = '2025-03-26' satisfies Revision

export const rulesOf = (revision: Revision): RevisionRules => ROWS[revision]

const KNOWN: ReadonlySet<unknown> = new Set(REVISIONS)

export const isRevision = (version: unknown): version is Revision => KNOWN.has(version)

export const isHandshakeRevision = (version: unknown): version is Revision =>
  isRevision(version) && ROWS[version].handshake

export const isModernRevision = (version: unknown): version is Revision =>
  isRevision(version) && !ROWS[version].handshake
