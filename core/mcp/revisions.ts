// Every protocol revision as a row of what the host does differently for it. Whoever must know asks the row; nowhere
// else is a revision named, so a new one is a new row here.
import type { ContentBlock } from './protocol.ts'

/** What differs from revision to revision. */
export interface RevisionRules {
  /**
   * True: a client opens with `initialize`, and may have a session. False: each request carries its version, its client and
   * that client's capabilities in `_meta` and in headers, and each result says what it is and how long it is fresh.
   */
  readonly handshake: boolean
  /** A body may be a list of messages. */
  readonly batches: boolean
  /** Clients know an empty first event for the id to come back to (basic/transports, "Resumability and Redelivery"). */
  readonly primesStreams: boolean
  /** An error for a message whose id could not be read has `id: null`; elsewhere the schema has no null. */
  readonly nullErrorIds: boolean
  /** The JSON-RPC code for "no such resource" (server/resources, "Error Handling"). */
  readonly resourceNotFoundCode: number
  /** Output schemas and structured content are objects; else any JSON. */
  readonly objectsOnly: boolean
  /** A question by URL has an id (client/elicitation, "URL Mode Elicitation Requests"). */
  readonly elicitationIds: boolean
  /** The HTTP status tells what an error answer is; else a client takes 404 for the end of its session. */
  readonly errorsByStatus: boolean
  /** The kinds of content block that it knows. */
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

/** The table, newest first; a row says how it differs from the first revision. */
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

/** A revision of the protocol that this host speaks. */
export type Revision = keyof typeof ROWS

/** Every revision, newest first. */
export const REVISIONS = Object.keys(ROWS) as readonly Revision[]

/** Revisions that open with `initialize`, newest first. */
export const HANDSHAKE_REVISIONS = REVISIONS.filter(revision => ROWS[revision].handshake) as [Revision, ...Revision[]]

/** The newest revision whose requests carry their own version and capabilities. */
export const MODERN_REVISION = '2026-07-28' satisfies Revision

/** What `initialize` is answered with where it asks for a revision that has none, or that is not ours. */
export const LATEST_HANDSHAKE = HANDSHAKE_REVISIONS[0]

/** What a request without a version header is taken for (2025-06-18, transports, "Protocol Version Header"). */
export const ASSUMED_REVISION = '2025-03-26' satisfies Revision

/** What is special about a revision. */
export const rulesOf = (revision: Revision): RevisionRules => ROWS[revision]

export const isRevision = (version: unknown): version is Revision =>
  typeof version === 'string' && Object.hasOwn(ROWS, version)

/** True for a revision that begins with `initialize`. */
export const isHandshakeRevision = (version: unknown): version is Revision =>
  isRevision(version) && ROWS[version].handshake

/** True for a revision whose requests carry their own version: it has neither `initialize` nor sessions. */
export const isModernRevision = (version: unknown): version is Revision =>
  isRevision(version) && !ROWS[version].handshake
