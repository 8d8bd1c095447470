// Types of the MCP client engine.
import type { Dispatcher } from 'undici'
import type { Cancellation } from '../core/mcp/wire/cancellation.ts'
import type { ClientCapabilities, Implementation, JsonObject, ServerCapabilities } from '../core/mcp/wire/protocol.ts'
import type { Revision } from '../core/mcp/wire/revisions.ts'
import type { RemoteError } from './errors.ts'

/** `modern`: requests carry version and capabilities (2026-07-28). `legacy`: starts with `initialize`. */
export type Era = 'modern' | 'legacy'

/** An MCP server at a URL. */
export interface HttpTarget {
  readonly url: string
  /** Sent with each request. A function is called for each request. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)
  /** The user's headers, for requests that set none, such as `initialize`. */
  readonly userHeaders?: () => Readonly<Record<string, string>> | undefined
  /** True: cookies are sent only in a session. Users share a connection without a session. */
  readonly sessionCookies?: boolean
  /** The sockets, shared by connections with the same dispatcher. See `createPool`. */
  readonly dispatcher?: Dispatcher
  /** Used instead of `dispatcher`. Slower: for clients with a login. */
  readonly fetch?: typeof fetch
  readonly tls?: TlsOptions
  /** Default: Streamable HTTP, and HTTP+SSE (2024-11-05) for servers that refuse it. */
  readonly transport?: 'auto' | 'http' | 'sse'
}

/** Certificates and keys as PEM texts. */
export interface TlsOptions {
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
}

/** An MCP server in a process of its own, started without a shell. */
export interface CommandTarget {
  readonly command: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /**
   * Names of environment variables of this process that the server gets, in addition to PATH, HOME and similar
   * variables.
   */
  readonly passEnv?: readonly string[]
  readonly cwd?: string
  /** Milliseconds after stdin was closed until SIGTERM is sent. Default: 2,000. */
  readonly stopGrace?: number
}

export type Target = HttpTarget | CommandTarget

/** A request of the server: `elicitation/create`, `sampling/createMessage`, `roots/list`. */
export interface ServerRequest extends ServerNotification {
  /** Aborts when the server cancels the request, or the connection ends. */
  readonly signal: AbortSignal
}

export interface ServerNotification {
  readonly method: string
  readonly params: JsonObject
  /**
   * The `owner` of the request whose stream carried this message; an unknown object if it has ended. Without a stream:
   * the `owner` of the only pending call, if any.
   */
  readonly owner: unknown
}

/** Durations in milliseconds. */
export interface ConnectOptions {
  readonly client: Implementation
  readonly capabilities?: ClientCapabilities
  /** Fixes the protocol version. Default: `server/discover`, then `initialize`. */
  readonly revision?: Revision
  /** A remembered result of era detection, which skips the probe. */
  readonly era?: Era
  /** Limit for connecting. Default: 15,000. */
  readonly connectTimeout?: number
  /** Maximum size of a message of the server, bytes, unless its request has a `maxResult`. Default: 64 MiB. */
  readonly maxMessage?: number
  /** Time that a message waits for an unreachable server. Default: 0. */
  readonly retryTimeout?: number
  /** Handles requests of the server. Without it, and for methods outside `capabilities`, the server gets error -32601. */
  readonly onRequest?: (request: ServerRequest) => Promise<JsonObject>
  readonly onNotification?: (notification: ServerNotification) => void
  /** A line that the server printed to stderr, or to stdout if it is not JSON. */
  readonly onOutput?: (line: string) => void
  /** Receives connection events for a debug log. */
  readonly onDebug?: (text: string) => void
  /** A lost session was replaced by a new one. Lists may have changed, and session state is lost. */
  readonly onReopened?: () => void
  /** The connection ended without a call of `close`. */
  readonly onClosed?: (error: RemoteError) => void
  readonly signal?: AbortSignal
}

export interface Progress {
  readonly progress: number
  readonly total?: number
  readonly message?: string
}

/** Durations in milliseconds. */
export interface RequestOptions {
  /** Also cancels the request on the server. */
  readonly signal?: AbortSignal | Cancellation
  readonly onProgress?: (progress: Progress) => void
  /** Maximum time without progress. Default: 60,000. 0: no limit. */
  readonly timeout?: number
  /** Maximum total time, even with progress. Default: 600,000. 0: no limit. */
  readonly maxTime?: number
  /** Headers added to the HTTP request, for credentials per call. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Capabilities that this request declares, instead of those of the connection (2026-07-28 only). */
  readonly capabilities?: ClientCapabilities | undefined
  /** Minimum severity of log messages for this request (2026-07-28 only). */
  readonly logLevel?: string | undefined
  /** Identifies the request to `onRequest` and `onNotification`. */
  readonly owner?: unknown
  /** Maximum size of the response, bytes. Default: `maxMessage`. */
  readonly maxResult?: number
  /** The server has confirmed a subscription. */
  readonly onActive?: () => void
  /** Receives the JSON text of the response, which preserves large numbers. */
  readonly onText?: (text: string) => void
}

/** Filters of `subscriptions/listen` (2026-07-28). */
export interface ListenFilters {
  readonly toolsListChanged?: boolean
  readonly promptsListChanged?: boolean
  readonly resourcesListChanged?: boolean
  readonly resourceSubscriptions?: readonly string[]
}

export interface Listening {
  /** Rejects if the server refuses the subscription. Broken streams are reopened. */
  readonly ended: Promise<void>
  end(): void
}

export interface Connection {
  readonly era: Era
  readonly revision: Revision
  readonly server: Partial<Implementation>
  readonly capabilities: ServerCapabilities
  readonly instructions: string | undefined
  /** The session id of the server; undefined without one. */
  readonly sessionId: string | undefined
  /**
   * Resolves to the result, including results with `resultType: 'input_required'`. Rejects with a `RemoteError`; its
   * `executed` shows whether the server may have executed the request.
   */
  request(method: string, params?: JsonObject, options?: RequestOptions): Promise<JsonObject>
  notify(method: string, params?: JsonObject): Promise<void>
  /** Subscribes to changes (2026-07-28). Legacy connections receive all changes without it. `onActive`: the server has confirmed. */
  listen(filters: ListenFilters, onActive?: () => void): Listening
  /** Ends the session or the process, and waits for it. Pending requests are rejected. */
  close(): Promise<void>
}
