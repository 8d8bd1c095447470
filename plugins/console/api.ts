// The contract between the console's server and its page: every JSON response and server-sent event.

/**
 * Rules of the API:
 * - All paths start with `/api/`. Responses are JSON with `Cache-Control: no-store`.
 * - Every request needs the session cookie and the header `X-Console` with the secret of the login. Otherwise the response is 401.
 * - `POST /api/login` needs only the header `X-Console: 1`.
 * - Every POST needs `Content-Type: application/json`.
 * - Errors have the body `ApiError`.
 * - Texts from clients and upstream servers are data. The page renders them as text.
 * - Except for calls of the operator, no response contains arguments, results, tokens or session ids.
 */
export const SECRET_HEADER = 'x-console'

/** Paths by name. The method is GET unless stated otherwise. NODE: data of all nodes, or of the node in the query parameter `node`. */
export const PATHS = {
  /** `POST LoginRequest`, replies `Login` and sets the cookie. The page reads the token from `location.hash` (`#t=`). */
  login: '/api/login',
  /** `POST`, without a body. Replies 204. */
  logout: '/api/logout',
  /** `Me`. */
  me: '/api/me',
  /** `Reply<Overview>`. NODE. */
  overview: '/api/overview',
  /** `Reply<Upstreams>`. NODE. */
  upstreams: '/api/upstreams',
  /** `Reply<Routes>`. */
  routes: '/api/routes',
  /** `Reply<Surface>`. */
  surface: '/api/surface',
  /** `POST AccessRequest`, replies `Reply<AccessMatrix>`. A POST, because a pasted token must not be part of a URL. */
  access: '/api/access',
  /** `POST ExplainRequest`, replies `Reply<Explanation>`. */
  explain: '/api/explain',
  /** `Reply<Calls>`: the records of the ring buffer, newest first. Query: `limit` (default 500). NODE. */
  calls: '/api/calls',
  /** `Reply<Denials>`. NODE. */
  denials: '/api/denials',
  /** `Reply<Sessions>`. NODE. */
  sessions: '/api/sessions',
  /** `Reply<Tasks>`. NODE. */
  tasks: '/api/tasks',
  /** `Reply<Clients>`. NODE. */
  clients: '/api/clients',
  /** `Reply<Grants>`. */
  grants: '/api/grants',
  /** `Reply<AuditTail>`. Query: `lines` (default 100, at most 500). */
  audit: '/api/audit',
  /** `Reply<ConfigView>`. */
  config: '/api/config',
  /** `Reply<Nodes>`. */
  nodes: '/api/nodes',
  /** `Reply<SearchResults>`. Query: `q`. */
  search: '/api/search',
  /** `text/event-stream` of `ConsoleEvent`. NODE. */
  events: '/api/events',
  /** `POST TryRequest`. Only if `Me.try`. Replies one line of JSON per notification (at most 100), then a `TryResult`. */
  try: '/api/try',
  /** `POST AppRequest`, replies `AppPage`. Only if `Me.try`. */
  app: '/api/app',
  /** `POST EndSessionRequest`, replies `ActionResult`. Only if `Me.actions`, otherwise 403. */
  endSession: '/api/actions/end-session',
  /** `POST CancelTaskRequest`, replies `ActionResult`. */
  cancelTask: '/api/actions/cancel-task',
  /** `POST Confirmed`, replies `ActionResult`. Default: all nodes. */
  reload: '/api/actions/reload',
} as const

/** The body of every response with a status of 400 or more. */
export interface ApiError {
  /** Stable: `unauthorized`, `forbidden`, `bad_request`, `not_found`, `conflict`, `too_many_requests`, `unavailable`, `internal`. */
  readonly error: string
  readonly message: string
}

/** Common to all responses with data. */
export interface Envelope {
  /** The name of the node that replied. */
  readonly node: string
  /** When the data was read, milliseconds since the epoch. */
  readonly at: number
  /** Origin of the data: one process, all worker processes of this machine, or all nodes of the cluster. */
  readonly scope: 'process' | 'machine' | 'cluster'
  /** The nodes of the cluster or machine. Absent if only one process exists. */
  readonly nodeStates?: readonly NodeState[]
}

export interface NodeState {
  readonly name: string
  /** The host name of its machine. */
  readonly machine: string
  /**
   * `silent`: the node did not reply in time, so its data is missing. `failed`: it could not read its data. `shortened`: its last
   * reply was shortened.
   */
  readonly state: 'ok' | 'silent' | 'shortened' | 'failed'
}

/** The data does not exist, such as that of a plugin that is off. */
export interface Unavailable extends Envelope {
  readonly available: false
  /** A sentence, such as "The plugin `audit` is off." */
  readonly reason: string
  /** The config that changes this, such as `audit: { file: "audit.jsonl" }`. */
  readonly fix?: string
}

export type Reply<Data> = (Envelope & { readonly available: true } & Data) | Unavailable

export interface LoginRequest {
  /** The one-time token of the start screen, or the configured `token`. */
  readonly token: string
}

export interface Me {
  /** `one-time token`, `token` or `role`: how the operator logged in. */
  readonly via: string
  readonly node: string
  /** Version of mcp-host. */
  readonly version: string
  readonly server: { readonly name: string; readonly version: string; readonly title?: string }
  /** The command that runs mcp-host, such as `npx mcp-host`. */
  readonly command: string
  /** Whether actions are enabled (`actions: true`). */
  readonly actions: boolean
  /** Whether tools can be called from the console. */
  readonly try: boolean
  /** When the console session expires, milliseconds since the epoch. */
  readonly expiresAt: number
}

/** How operators can log in. */
export interface LoginMethods {
  /** False: there are no tokens, only `signIn`. */
  readonly tokens: boolean
  /** The page where users with the role sign in. The console's page adds `challenge`: the SHA-256 of its `verifier`, base64url. */
  readonly signIn?: string
}

export interface Login extends Me {
  /** Value of `X-Console`. All ports of an address share cookies, but not the storage of the page. */
  readonly secret: string
}

// Screen 1: overview

export interface Overview {
  readonly version: string
  readonly nodeVersion: string
  /** Absent for the sum of several nodes. */
  readonly pid?: number
  readonly processes: number
  /** Seconds. */
  readonly uptime: number
  readonly ready: boolean
  readonly checks: readonly Check[]
  readonly warnings: readonly Warning[]
  /** Figures of the last 60 seconds. */
  readonly now: CallStats
  /** One value per second, oldest first, at most 300. The last second is complete. */
  readonly history: readonly Second[]
  readonly topTools: readonly ToolStats[]
  readonly inFlight: number
  readonly sessions: number
  readonly streams: number
  /** Figures of the process. */
  readonly memory: { readonly rss: number; readonly heapUsed: number }
  /** Plugins that are on. */
  readonly plugins: readonly string[]
}

export interface Check {
  readonly name: string
  readonly ok: boolean
  readonly reason?: string
}

export interface Warning {
  /** `MHnnnn`. */
  readonly code: string
  readonly message: string
  /** How to remove the cause. */
  readonly fix?: string
  /** Path in the config, such as `http.host`. */
  readonly at?: string
  /** `file:line`. */
  readonly source?: string
  /** The upstream server. */
  readonly upstream?: string
  /** The most recent reason. */
  readonly reason?: string
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

export interface CallStats {
  readonly callsPerSecond: number
  /** Shares of all calls, from 0 to 1. `errors` includes tool errors. */
  readonly errors: number
  readonly denials: number
  /** Milliseconds; absent without calls. */
  readonly p50?: number
  readonly p99?: number
}

export interface Second {
  /** Seconds since the epoch. */
  readonly at: number
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly p50?: number
  readonly p99?: number
}

/** Since the console started. Evicted items start again at 0. */
export interface ToolStats {
  readonly route: string
  readonly kind: ItemKind
  readonly name: string
  readonly calls: number
  readonly errors: number
  readonly denials: number
  readonly p50?: number
  readonly p99?: number
  readonly lastAt: number
}

export type ItemKind = 'tools' | 'resources' | 'prompts'

// Screen 2: routes

export interface Routes {
  readonly routes: readonly RouteRow[]
  /** Clients of the command `connect`. */
  readonly clients: readonly ConnectClient[]
}

export interface ConnectClient {
  /** Such as `claude-code`. */
  readonly id: string
  readonly title: string
}

export interface RouteRow {
  /** As configured, such as `/t/:category?`. */
  readonly path: string
  /** A path with sample parameters, for `access` and `try`. */
  readonly samplePath: string
  readonly url: string
  readonly toolsets: readonly string[]
  readonly transports: readonly string[]
  readonly revisions: readonly string[]
  readonly stateless: boolean
  readonly listen: boolean
  /** Whether anonymous callers can use the route. */
  readonly open: boolean
  /** In words, such as `any signed-in user`. */
  readonly callers: string
  readonly authenticators: readonly string[]
  readonly issuers: readonly string[]
  /** Served tools. */
  readonly tools: number
  /** Withheld items of upstream servers. */
  readonly withheld: number
  /** Plugins with options of this route. */
  readonly overrides: readonly string[]
  /** CLI commands that can be copied. */
  readonly commands: readonly Command[]
}

/** A CLI command that gives the same information. */
export interface Command {
  /** Such as `Connect Claude Code`. */
  readonly label: string
  readonly command: string
}

// Screen 3: surface

export interface Surface {
  readonly items: readonly SurfaceItem[]
  /** Withheld items of upstream servers on this node, with the reasons. At most 100 for each server. */
  readonly withheld: ReadonlyArray<readonly [string, string]>
  readonly lock: LockState
  readonly figures: readonly ToolStats[]
  readonly commands: readonly Command[]
}

export interface LockState {
  /** `none`: there is no lock file, and `changes` contains only those of upstream servers. `same`, `changed`: compared with the lock file. `unreadable`: see `problem`. */
  readonly state: 'none' | 'same' | 'changed' | 'unreadable'
  readonly problem?: string
  readonly changes: readonly LockChange[]
}

export interface LockChange {
  /** As `mcp-host diff` names it: a path or path and item. */
  readonly at: string
  readonly impact: string
  readonly text: string
  /** Lines with the previous and new values, as `mcp-host diff` prints them: shortened and escaped. */
  readonly diff?: string
  /** Set for changes of one item, as in `SurfaceItem`. */
  readonly path?: string
  readonly kind?: ItemKind
  readonly name?: string
}

export interface SurfaceItem {
  /** The path with its parameter values, as in the lock file. */
  readonly path: string
  /** The configured route. */
  readonly route: string
  readonly kind: ItemKind
  /** True for resource templates. */
  readonly template: boolean
  readonly name: string
  readonly title?: string
  readonly description?: string
  /** The definition as clients receive it: schemas, annotations, icons. */
  readonly shown: Readonly<Record<string, unknown>>
  /** Requirements of callers, such as `scope "admin"`; empty: anyone who can use the route. */
  readonly needs: readonly string[]
  /** False if no list shows the item (tool-search, tool-policy). */
  readonly listed: boolean
  /** Why calls of an accepted tool fail, such as a changed definition. */
  readonly withheld?: string
  /** `required`, `optional` or a mode of the plugin `tasks`. */
  readonly task?: string
  /** Limits of the tool in words, such as isolation or concurrency. */
  readonly limits: readonly string[]
}

// Screen 4: access

/** One of `role`, `scope`, `token`; none: anonymous. */
export interface Caller {
  readonly label?: string
  readonly roles?: readonly string[]
  readonly scopes?: readonly string[]
  /** A pasted token, checked by the route's own plugins. It is not stored or echoed. */
  readonly token?: string
}

export interface AccessRequest {
  /** A path such as `RouteRow.samplePath`. */
  readonly path: string
  /** At most 16. Absent: anonymous, and one caller per role and scope in the config. */
  readonly callers?: readonly Caller[]
}

export interface AccessMatrix {
  readonly path: string
  readonly route: string
  readonly items: readonly { readonly kind: ItemKind; readonly name: string }[]
  readonly callers: readonly AccessRow[]
  readonly notes: readonly string[]
  readonly commands: readonly Command[]
}

export interface AccessRow {
  readonly label: string
  /** The caller without the token, to send back to `explain`. */
  readonly caller: Omit<Caller, 'token'>
  /** Whether the token was verified; absent for other callers. */
  readonly token?: string
  /** Set if the route refuses the caller; then all cells are `denied`, or `error` if a plugin threw an error. */
  readonly refused?: Refusal
  /** In the order of `items`. */
  readonly cells: readonly AccessCell[]
}

export interface AccessCell {
  /** `hidden`: not listed and not callable. `denied`: listed, but calls are refused. `unlisted`: callable, not listed. `error`: a plugin threw an error. */
  readonly state: 'allowed' | 'unlisted' | 'hidden' | 'denied' | 'error'
  readonly reason?: string
}

export interface Refusal {
  readonly status: number
  readonly reason: string
}

export interface ExplainRequest {
  readonly path: string
  readonly caller: Caller
  readonly kind?: ItemKind
  readonly name?: string
}

/** The text of `mcp-host explain`. */
export interface Explanation {
  readonly lines: readonly string[]
  readonly command: Command
}

// Screens 6 and 7: calls and denials

export interface CallRow {
  /** Increases with each record of a node. Unique together with `node`. */
  readonly seq: number
  readonly node: string
  /** Start, milliseconds since the epoch. */
  readonly at: number
  readonly ms: number
  /** `refused`: a denial. */
  readonly outcome: 'ok' | 'input_required' | 'tool_error' | 'error' | 'refused' | 'cancelled'
  readonly route?: string
  readonly method?: string
  readonly kind?: ItemKind
  readonly name?: string
  readonly client?: { readonly name: string; readonly version: string }
  readonly oauthClient?: string
  /** A pseudonym. */
  readonly user?: string
  readonly revision?: string
  readonly transport?: string
  readonly http?: { readonly verb: string; readonly status: number }
  readonly bytesIn?: number
  readonly bytesOut?: number
  readonly requestId?: string
  readonly traceId?: string
  /** Requests to the client during the call, such as `elicitation/create`. */
  readonly asked?: readonly string[]
  /** The request to an upstream server or API: the toolset, the name of the tool there, and the duration in milliseconds. */
  readonly upstream?: { readonly name: string; readonly tool?: string; readonly ms: number; readonly failure?: string }
  readonly error?: CallError
  /** Measured for up to 50 requests per second, while a page is open. */
  readonly stages?: readonly Stage[]
}

export interface CallError {
  /** Error kind, such as `forbidden`. */
  readonly kind: string
  readonly status: number
  readonly message: string
  /** The reason in the log and the audit, such as `lacks role "admin"`. Clients do not receive it. */
  readonly reason?: string
  /** The plugin that refused the call. */
  readonly refusedBy?: string
}

export interface Stage {
  readonly name: string
  /** Milliseconds after the start of the request. */
  readonly start: number
  readonly ms: number
}

export interface Calls {
  readonly calls: readonly CallRow[]
  /** Records that the ring buffer has dropped since the start. */
  readonly dropped: number
  readonly capacity: { readonly records: number; readonly bytes: number }
}

export interface Denials {
  readonly groups: readonly DenialGroup[]
  /** Denials that were counted without a group, because the number of groups is limited. */
  readonly other: number
}

export interface DenialGroup {
  readonly kind: string
  readonly status: number
  readonly refusedBy: string
  readonly route?: string
  /** A sample path of the route, for `explain`. */
  readonly samplePath?: string
  readonly method?: string
  readonly item?: { readonly kind: ItemKind; readonly name: string }
  readonly client?: string
  /** The most recent message and reason. */
  readonly message: string
  readonly reason?: string
  /** Next step for the operator. */
  readonly fix?: string
  /** Absent if only one process exists. */
  readonly nodes?: readonly string[]
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

// Screen 8: sessions

export interface Sessions {
  readonly sessions: readonly SessionRow[]
  /** All sessions, including those not listed. */
  readonly total: number
  readonly streams: number
  /** Bytes of responses that clients have not read. */
  readonly waitingBytes: number
}

export interface SessionRow {
  /** Opaque; for the action `endSession`. Not the session id. */
  readonly handle: string
  /** The home of the session. Other nodes can serve it, too. */
  readonly node: string
  readonly route: string
  readonly lastUsedAt: number
  /** A pseudonym; absent for anonymous sessions. */
  readonly owner?: string
  readonly client?: { readonly name: string; readonly version: string }
  readonly revision?: string
  readonly transport?: string
  readonly streams: number
}

// Screen 9: tasks

export interface Tasks {
  readonly tasks: readonly TaskRow[]
  readonly counts: Readonly<Record<string, number>>
  /** Age of the oldest queued task, seconds. */
  readonly queueAge?: number
}

export interface TaskRow {
  /** Opaque; for the action `cancelTask`. Not the task id. */
  readonly handle: string
  readonly tool: string
  readonly route?: string
  /** `queued`, `working`, `input_required`, `completed`, `failed`, `cancelled`. */
  readonly status: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly owner?: string
  /** Absent if several nodes share the task. */
  readonly node?: string
}

// Upstream servers

export interface Upstreams {
  readonly servers: readonly UpstreamRow[]
  /** Number of rows on all nodes. `servers` contains at most 1,000. */
  readonly total: number
  readonly commands: readonly Command[]
}

/** The state of one server on one node. */
export interface UpstreamRow {
  readonly name: string
  readonly node: string
  readonly transport: 'http' | 'stdio'
  /** The URL without credentials and query, or the command without arguments. */
  readonly target: string
  readonly state: 'not connected' | 'connecting' | 'up' | 'needs login' | 'down' | 'crash loop'
  /** The start of the state. */
  readonly since: number
  readonly nextAttempt?: number
  /** The last error of the list connection. Excludes caller sessions. */
  readonly lastError?: { readonly at: number; readonly reason: string }
  /** Name and version that the server reports. */
  readonly server?: string
  readonly revision?: string
  readonly era?: 'legacy' | 'modern'
  readonly tools: number
  readonly resources: number
  readonly prompts: number
  /** Items that are not served, with the reasons. */
  readonly withheld: ReadonlyArray<readonly [string, string]>
  readonly withheldCount: number
  readonly sessions: number
  readonly activeCalls: number
  readonly queuedCalls: number
  /** Calls that wait for a response of the client. */
  readonly heldCalls: number
  /** Routes with the toolset of the server. */
  readonly routes: readonly string[]
}

// Screen 10: clients

export interface Clients {
  readonly clients: readonly ClientRow[]
  /** Legacy use, from the records since the console started. */
  readonly legacy: LegacyUse
  /** Clients counted together, because the number of rows is limited. */
  readonly other: number
}

export interface ClientRow {
  readonly name: string
  readonly version: string
  readonly revision: string
  readonly transport: string
  /** Absent if only one process exists. */
  readonly nodes?: readonly string[]
  readonly calls: number
  readonly lastAt: number
}

export interface LegacyUse {
  readonly since: number
  readonly calls: number
  /** Calls with a protocol version that needs sessions. */
  readonly handshake: number
  /** Calls over HTTP+SSE. */
  readonly sse: number
  /** False if `transport-sse` is on and no call used it. */
  readonly sseNeeded?: boolean
}

/** Of the authorization server `auth-bridge`, from its store. */
export interface Grants {
  /** The clients of `grants`. */
  readonly clients: readonly OAuthClientRow[]
  /** Newest first, at most 200 per authorization server. */
  readonly grants: readonly GrantRow[]
  /** There can be older grants. */
  readonly cut: boolean
}

interface OAuthClient {
  /** A long id is shortened in the middle. */
  readonly id: string
  readonly name?: string
}

export interface OAuthClientRow extends OAuthClient {
  /** `config`: a fixed client. `document`: a metadata document at a URL. `registration`: dynamic registration. */
  readonly from: 'config' | 'document' | 'registration'
  readonly grants: number
  readonly users: number
  readonly firstAt: number
  readonly lastAt: number
}

export interface GrantRow {
  readonly client: OAuthClient
  /** A pseudonym. */
  readonly user: string
  readonly scopes: readonly string[]
  readonly createdAt: number
  /** The last time that the client received tokens; absent before the first. */
  readonly usedAt?: number
}

// Screen 11: audit

export interface AuditTail {
  readonly file: string
  /** Newest last. Each line as the file holds it, parsed; an unreadable line is `{ "unreadable": true }`. */
  readonly lines: readonly Readonly<Record<string, unknown>>[]
  readonly chain: {
    /** `ok`: the lines shown form an unbroken chain. `broken`: see `problem`. */
    readonly state: 'ok' | 'broken'
    /** First and last sequence number of the lines. */
    readonly from?: number
    readonly to?: number
    /** Hash of the last line. */
    readonly head?: string
    readonly problem?: string
  }
  readonly commands: readonly Command[]
}

// Screen 12: config

export interface ConfigView {
  readonly file?: string
  /** The resolved config: defaults filled in, secrets replaced by `***`, functions by `[function]`. */
  readonly config: Readonly<Record<string, unknown>>
  /** By config path, such as `plugins.metrics.port`. */
  readonly keys: Readonly<Record<string, ConfigKey>>
  readonly reload: LastReload | null
  readonly commands: readonly Command[]
}

export interface ConfigKey {
  /** `file:line`; absent for defaults. */
  readonly source?: string
  /** From the JSON Schema. */
  readonly description?: string
  readonly isDefault: boolean
  /** Whether a change needs a restart. */
  readonly restart: boolean
}

export interface LastReload {
  readonly at: number
  readonly ok: boolean
  readonly taken: readonly string[]
  readonly restart: readonly string[]
  /** Clients that were notified. */
  readonly told: number
  readonly problem?: string
}

// Nodes, search, events

export interface Nodes {
  readonly nodes: readonly NodeRow[]
}

export interface NodeRow {
  readonly name: string
  readonly machine?: string
  readonly pid: number
  readonly self: boolean
  /** Seconds. */
  readonly uptime: number
  readonly callsPerSecond: number
  readonly sessions: number
  readonly version: string
}

export interface SearchResults {
  readonly query: string
  /** At most 20. */
  readonly hits: readonly SearchHit[]
}

export interface SearchHit {
  readonly kind: 'route' | ItemKind | 'call' | 'warning' | 'upstream'
  readonly title: string
  readonly text?: string
  /** Identifies the hit: a route path, `path` and `name` of an item, `seq` of a call, the name of a server, a code. */
  readonly path?: string
  readonly name?: string
  readonly seq?: number
  /** The node of a call. */
  readonly node?: string
}

/**
 * One SSE message: `event` is the type, and `data` is the JSON of the other members. Every second, the stream sends one
 * `tick`, and one `calls` message for each node with calls. Comments keep the connection open. At most 8 viewers.
 */
export type ConsoleEvent =
  | {
      readonly event: 'calls'
      readonly node: string
      /** Records since the last message, oldest first, at most 200. */
      readonly calls: readonly CallRow[]
      /** Records that this message leaves out. */
      readonly skipped: number
    }
  | {
      readonly event: 'tick'
      readonly node: string
      readonly nodeStates?: readonly NodeState[]
      readonly at: number
      readonly second: Second
      readonly now: CallStats
      readonly inFlight: number
      readonly sessions: number
      readonly ready: boolean
    }
  /** The config was reloaded; the page reads its screens again. */
  | { readonly event: 'reload'; readonly node: string; readonly reload: LastReload }
  /** The console session ended or the host stops; the page stops reconnecting. */
  | { readonly event: 'end'; readonly node: string; readonly reason: string }

// Screen 5: try a tool

/** One JSON-RPC request to the public endpoint, as an ordinary client sends it. */
export interface TryRequest {
  readonly path: string
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Bearer token of the operator's own login; absent: anonymous. Not stored. */
  readonly token?: string
  /** Required for tools with `destructiveHint`. */
  readonly confirm?: true
  /** The second round of a tool that requested input: as the result contained them. */
  readonly inputResponses?: Readonly<Record<string, unknown>>
  readonly requestState?: string
}

export interface TryResult {
  readonly status: number
  readonly ms: number
  /** The JSON-RPC response as the client receives it. */
  readonly response: Readonly<Record<string, unknown>>
  readonly commands: readonly Command[]
}

/** Requests the page of an app (MCP Apps). */
export interface AppRequest {
  readonly path: string
  /** `_meta.ui.resourceUri` of the tool. */
  readonly uri: string
  readonly token?: string
}

export interface AppPage {
  /** For a frame with `sandbox="allow-scripts"`. Served once. The request needs no login, because the path is secret. */
  readonly path: string
  /** Declared origins (`csp`) that the policy of the page contains. */
  readonly allowed: readonly string[]
  /** Other declared origins, such as addresses of private networks. */
  readonly refused: readonly string[]
}

// Actions

/** The server refuses an action without `confirm: true` with 400. */
export interface Confirmed {
  readonly confirm: true
  /** The node that runs the action. Default: the node of the console; for `reload` all nodes. */
  readonly node?: string
}

export interface EndSessionRequest extends Confirmed {
  readonly handle: string
}

export interface CancelTaskRequest extends Confirmed {
  readonly handle: string
}

export interface ActionResult {
  readonly ok: boolean
  readonly message: string
  /** For `reload`: the result of each node, and of one worker per program. */
  readonly nodes?: readonly NodeResult[]
}

export interface NodeResult {
  readonly node: string
  readonly ok: boolean
  readonly message: string
}

const SAFE = /^[\w@%+=:,./-]+$/

/** Quotes a word of a shell command. Escapes control characters, because a terminal executes them in pasted text. */
export function shellWord(word: string): string {
  if (SAFE.test(word)) return word
  if (!/\p{Cc}/u.test(word)) return `'${word.replaceAll("'", `'\\''`)}'`
  const escaped = word
    .replaceAll(/[\\']/g, '\\$&')
    .replaceAll(/\p{Cc}/gu, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `$'${escaped}'`
}
