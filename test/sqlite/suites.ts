// The suites of sessions and streams that are run with their store in a file as well (run.ts), and which of their tests cannot be.

export const SUITES = [
  'test/flow/*.{test,system}.ts',
  'test/plugins/transport-streamable/*.test.ts',
  'test/plugins/transport-sse/*.test.ts',
  // These call no store.
  '!test/flow/{input-required*,request-state-validation,authenticators,challenge-scope,client-value-limits,dpop*}.*',
  '!test/flow/{frozen-user,guarded-routes*,misbehaving-tools,non-http-authorization}.*',
  '!test/flow/{official-clients,ping,protected,reload*,multi-round-handlers,same-response-properties,pipelining,shared-config-values}.*',
  '!test/flow/{slow-readers,error-hints,token-expiry}.*',
  '!test/plugins/transport-streamable/{invalid-*,misbehaving-tools,batches,legacy-*,limits,modern,negotiation,notifications,streaming,methods-and-paths,wrong-params}.test.ts',
  '!test/plugins/transport-sse/start.test.ts',
  // Their results are decided before the store is called, and other suites test the same calls of the store.
  '!test/flow/{session-client-responses,upstream-token}.*',
  '!test/plugins/transport-streamable/session-{batches,initialize,requests}.test.ts',
  'test/cluster/{session-failover,forged-responses,get-stream-limit,sessions,streams,concurrent-subscriptions}.system.ts',
] as const

export interface LeftOut {
  /** The file, and the beginning of a test's title or that of its suite; all of the file where there is none. */
  readonly file: string
  readonly title?: string
  /** Default: each store. */
  readonly on?: 'postgres'
  readonly why: string
}

const OWN_STORE = 'it fills the slot of a store itself'
const TOLD_LATER =
  'a store that several processes share is told of use four times a second: test/cluster/sessions.system.ts has it'
const CONDITIONS = 'it names every condition of readiness, and the file is one more'
const REDIS = 'it looks into Redis, or stops it'
const HANDS_OVER = 'a node of several hands over its sessions and closes its port at once'
const ENDS_LATER =
  'it expects that a session has ended before the next request, which another connection to the database serves'

const onPostgres = (file: string, why: string, ...titles: readonly string[]): readonly LeftOut[] =>
  titles.map(title => ({ file, title, why, on: 'postgres' }))

export const LEFT_OUT: readonly LeftOut[] = [
  { file: 'test/flow/first-event.test.ts', title: 'first event of a stream', why: OWN_STORE },
  { file: 'test/flow/first-event.test.ts', title: 'Last-Event-ID validation', why: OWN_STORE },
  { file: 'test/flow/first-event.test.ts', title: 'calls that close their connection', why: OWN_STORE },
  { file: 'test/flow/resume.test.ts', title: 'stream resumption, with a slow store', why: OWN_STORE },
  { file: 'test/flow/shutdown-slow-store.test.ts', why: OWN_STORE },
  { file: 'test/plugins/transport-streamable/session-ids.test.ts', why: OWN_STORE },
  {
    file: 'test/flow/sessions-shutdown.test.ts',
    title: 'readiness fails while running calls finish',
    why: CONDITIONS,
  },
  {
    file: 'test/flow/sessions-shutdown.test.ts',
    title: 'serves existing sessions until calls finish',
    why: CONDITIONS,
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'leaves half of maxIdle to other owners by default',
    why: OWN_STORE,
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'sessions.idleTimeout',
    why: 'its clock stands still, and the file has the time of the system: the store contracts cover expiry',
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'evicts the longest idle session if each owner has one',
    why: 'among owners with equal counts, the order of the store decides',
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'does not count expired sessions that the periodic check has not ended yet',
    why: 'its clock stands still, and the store has the time of its server',
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'evicts the longest idle sessions of the owner with the most',
    why: TOLD_LATER,
  },
  {
    file: 'test/plugins/transport-streamable/session-limits.test.ts',
    title: 'counts authenticated users rather than addresses',
    why: TOLD_LATER,
  },
  { file: 'test/cluster/get-stream-limit.system.ts', title: 'do not count when Redis rejected them', why: REDIS },
  ...onPostgres(
    'test/flow/sessions-shutdown.test.ts',
    HANDS_OVER,
    'accepts an elicitation response on a new connection',
    'ends GET and subscriptions/listen streams that open during the drain within a second',
    'counts a subscription closed by its client during the drain once',
  ),
  ...onPostgres(
    'test/plugins/transport-streamable/session-hooks.test.ts',
    ENDS_LATER,
    'that throws opens no session: 500 with the request id and a log entry, without its text',
    'that fails later ends its session: calls are aborted, its id gets 404, logged',
  ),
  ...onPostgres(
    'test/flow/subscriptions-listen.test.ts',
    'it fills the slot of the bus itself',
    'delivers changes of other nodes to listeners and sessions',
  ),
  ...onPostgres(
    'test/cluster/forged-responses.system.ts',
    'it reads the messages between nodes',
    'are forwarded once for a pending request and never without one',
    'session change messages contain only the changed values',
  ),
  {
    file: 'test/cluster/session-failover.system.ts',
    title: 'answers a call of a killed node with node-lost',
    why: 'its nodes are no processes of one host: test/slow/sqlite-chaos.slow.ts kills workers',
  },
]
