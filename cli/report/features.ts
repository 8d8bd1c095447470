// The old features of the protocol, by which of them a request used, and what may go once nobody uses one.
import { MODERN_REVISION, REVISIONS, rulesOf } from '../../core/mcp/revisions.ts'
import type { LoggedRequest } from './logged-request.ts'

type Asked = Pick<LoggedRequest, 'method' | 'revision' | 'transport' | 'session' | 'asked' | 'audited'>

export interface Feature {
  readonly name: string
  /** True: used. Undefined: the line does not say whether. */
  isUsed(request: Asked): boolean | undefined
  /** In a sentence after "nobody used" and "still use". */
  readonly words: string
  /** What an operator may do once nobody uses it. */
  readonly allows?: string
}

/** By their dates, so that a revision that is newer than this program is none of the old ones. */
export const isOldRevision = (revision: string | undefined): revision is string =>
  revision !== undefined && /^\d{4}-\d\d-\d\d$/.test(revision) && revision < MODERN_REVISION

const BATCHING = new Set<string>(REVISIONS.filter(revision => rulesOf(revision).batches))

/** What a handler asks of a client in a session is a request of the server, on a stream. */
const asked =
  (method: string): Feature['isUsed'] =>
  ({ asked: methods, revision }) =>
    methods.includes(method) && isOldRevision(revision)

const called =
  (...methods: readonly string[]): Feature['isUsed'] =>
  ({ method, revision }) =>
    isOldRevision(revision) && method !== undefined && methods.includes(method)

export const SESSIONS = 'sessions'
export const HTTP_SSE = 'HTTP+SSE'

export const FEATURES: readonly Feature[] = [
  {
    name: 'old revision',
    words: `a revision before ${MODERN_REVISION}`,
    isUsed: ({ revision }) => isOldRevision(revision),
  },
  {
    name: SESSIONS,
    words: 'sessions',
    allows: 'routes may be `stateless: true`',
    isUsed: ({ revision, session, transport }) =>
      isOldRevision(revision) && (session !== undefined || transport !== undefined),
  },
  {
    name: HTTP_SSE,
    words: HTTP_SSE,
    allows: 'transport-sse may go',
    isUsed: ({ transport }) => transport === 'transport-sse',
  },
  {
    name: 'batches',
    words: 'batches',
    // A line is one message, and does not say in which body it came.
    isUsed: ({ revision }) => (revision !== undefined && BATCHING.has(revision) ? undefined : false),
  },
  { name: 'sampling', words: 'sampling in a session', isUsed: asked('sampling/createMessage') },
  { name: 'elicitation', words: 'elicitation in a session', isUsed: asked('elicitation/create') },
  { name: 'roots', words: 'roots in a session', isUsed: asked('roots/list') },
  {
    name: 'logging/setLevel',
    words: 'logging/setLevel',
    // An audit leaves it out, by default.
    isUsed: request =>
      called('logging/setLevel')(request) || (request.audited && isOldRevision(request.revision) ? undefined : false),
  },
  {
    name: 'resources/subscribe',
    words: 'resources/subscribe',
    isUsed: called('resources/subscribe', 'resources/unsubscribe'),
  },
]

/** Dynamic client registration: clients register with the authorization server, which neither log is of. */
export const DCR = 'DCR'
