// Everything a client can be told went wrong, in one table: kind -> HTTP status, JSON-RPC code, text.
// Thrown anywhere; written in one place (core/kernel/pipeline.ts for HTTP, the transport for JSON-RPC).

import { errorText, isBranded } from './describe-thrown.ts'

/** Characters of an error's sentence, whatever it was made of. */
const MAX_DETAIL = 4_096

interface ErrorKind {
  /** HTTP status where the response has not begun and the host itself decided. */
  readonly status: number
  /** JSON-RPC error code. */
  readonly code: number
  readonly message: string
}

const kind = (status: number, code: number, message: string): ErrorKind => ({ status, code, message })

/**
 * The table. Codes: JSON-RPC 2.0; 2026-07-28 basic "Error Codes" for -32020 to -32022; -32000 and -32001 as the official
 * SDKs, for what HTTP refuses and for a session that is not there, which is what clients open a new one after.
 */
export const ERROR_KINDS = {
  parseError: kind(400, -32700, 'Parse error'),
  invalidRequest: kind(400, -32600, 'Invalid request'),
  invalidMeta: kind(400, -32602, 'Invalid request metadata'),
  headerMismatch: kind(400, -32020, 'Header mismatch'),
  missingCapability: kind(400, -32021, 'Missing required client capability'),
  unsupportedVersion: kind(400, -32022, 'Unsupported protocol version'),
  methodNotFound: kind(404, -32601, 'Method not found'),
  invalidParams: kind(200, -32602, 'Invalid params'),
  resourceNotFound: kind(200, -32602, 'Resource not found'),
  internal: kind(500, -32603, 'Internal error'),
  callTimeout: kind(200, -32603, 'The call took too long'),
  nodeLost: kind(200, -32603, 'The server node that ran this was lost; the request may be sent again'),
  stateTooLarge: kind(200, -32603, 'The recorded answers do not fit into requestState'),
  unauthorized: kind(401, -32600, 'Authentication required'),
  forbidden: kind(403, -32000, 'Forbidden'),
  hostNotAllowed: kind(403, -32000, 'Host not allowed'),
  originNotAllowed: kind(403, -32000, 'Origin not allowed'),
  notFound: kind(404, -32600, 'Not found'),
  sessionIdMissing: kind(400, -32000, 'Session id missing'),
  sessionNotFound: kind(404, -32001, 'Session not found'),
  methodNotAllowed: kind(405, -32600, 'Method not allowed'),
  notAcceptable: kind(406, -32000, 'Not acceptable'),
  conflict: kind(409, -32000, 'Conflict'),
  payloadTooLarge: kind(413, -32000, 'Payload too large'),
  unsupportedMediaType: kind(415, -32000, 'Unsupported media type'),
  tooManyRequests: kind(429, -32600, 'Too many requests'),
  unavailable: kind(503, -32603, 'Service unavailable'),
} as const satisfies Record<string, ErrorKind>

/** A row of the table of errors. */
export type HostErrorKind = keyof typeof ERROR_KINDS

/** What an error says beside its kind. */
export interface HostErrorOptions {
  /** One sentence for the client, cut at 4,096 characters; appended to the kind's text. Never a secret, never another user's data. */
  detail?: string
  /** `error.data` for the client. */
  data?: unknown
  /** Response headers that belong to this refusal, such as `Allow` or `WWW-Authenticate`. */
  headers?: Record<string, string>
  /** Why it was refused, in a sentence for logs and observers alone, such as the rule that was not met. */
  reason?: string
  /** For the log only. */
  cause?: unknown
}

const BRAND = Symbol.for('mcp-host.HostError')

/**
 * A refusal or failure that the client is told about. Anything else that is thrown is a bug: it answers 500,
 * is logged, and its text never leaves the host.
 */
export class HostError extends Error {
  readonly kind: HostErrorKind
  readonly detail: string | undefined
  readonly data: unknown
  readonly headers: Record<string, string> | undefined
  readonly reason: string | undefined
  #status: number | undefined

  constructor(kind: HostErrorKind, { detail, data, headers, reason, cause }: HostErrorOptions = {}) {
    const said = detail === undefined || detail.length <= MAX_DETAIL ? detail : `${detail.slice(0, MAX_DETAIL)}…`
    super(said === undefined ? ERROR_KINDS[kind].message : `${ERROR_KINDS[kind].message}: ${said}`, { cause })
    this.name = 'HostError'
    this.kind = kind
    this.detail = said
    this.data = data
    this.headers = headers
    this.reason = reason
    Object.defineProperty(this, BRAND, { value: true })
  }

  /** HTTP status where the response has not begun. */
  get status(): number {
    return this.#status ?? ERROR_KINDS[this.kind].status
  }

  get code(): number {
    return ERROR_KINDS[this.kind].code
  }

  /** The same error as the answer of a well-formed request: HTTP 200. */
  within200(): HostError {
    const { detail, data, headers, reason, cause } = this
    const error = new HostError(this.kind, {
      ...(detail !== undefined && { detail }),
      ...(headers !== undefined && { headers }),
      ...(reason !== undefined && { reason }),
      data,
      cause,
    })
    error.#status = 200
    return error
  }

  /** True for a HostError of any copy of this module: a config may load its own. */
  static is(value: unknown): value is HostError {
    return isBranded(value, BRAND)
  }
}

/** What HTTP tells clients of every revision: they must sign in, or come back later. */
const TOLD_TO_ALL: ReadonlySet<number> = new Set([401, 403, 429, 503])

/**
 * The HTTP status of an error: the one place that chooses it. Without `answers` the error refuses an HTTP request. With it
 * the error is the answer to a message: where a revision's clients read no status it is 200, but for TOLD_TO_ALL.
 */
export function statusOf(
  { status }: { readonly status: number },
  answers?: { readonly errorsByStatus: boolean },
): number {
  if (!answers) return status === 200 ? 400 : status
  return answers.errorsByStatus || TOLD_TO_ALL.has(status) ? status : 200
}

/** True for what may do when it is tried again: another node, or a store, does not answer. */
export const isUnavailable = (thrown: unknown): boolean => HostError.is(thrown) && thrown.kind === 'unavailable'

/** For what a host that ends cannot take any more: another, or the next, can. */
export const shuttingDown = (): HostError =>
  new HostError('unavailable', {
    detail: 'the server is shutting down',
    headers: { 'Retry-After': '1', Connection: 'close' },
  })

/** For requests of a node that stopped or died before it answered them: nobody knows how far they came. */
export const nodeLost = (): HostError => new HostError('nodeLost', { data: { reason: 'node-lost', retryable: true } })

export { errorText }

/** The keys that lead to a value of the config, from its top. */
export type Path = readonly (string | number)[]

/** Where something is written: keys of the config or, where `of` is given, of that definition. */
export interface Written {
  readonly at?: Path
  readonly of?: object
}

/** Takes a mistake and lets its finder go on to the next. A warning (default: an error) does not stop the start. */
export type Report = (mistake: StartError, severity?: 'error' | 'warning') => void

/** For finders whose first mistake is their last. */
export const stopAtFirst: Report = mistake => {
  throw mistake
}

/** A path as one would write it: `routes['/admin'].toolsets[0]`. The empty path is `(config)`. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(config)'
  return path
    .map(key => (typeof key === 'number' ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `['${key}']`))
    .join('')
    .replace(/^\./, '')
}

export interface StartErrorOptions extends Written {
  cause?: unknown
  /** Default: 2 where the place is told, else 1. 3: `audit verify` has no key to look with. */
  exitCode?: 1 | 2 | 3
  /** What else it is about, such as the other of two that clash. */
  also?: readonly Written[]
}

/**
 * A mistake in the config or at start-up: shown to the operator whole, without a stack. `at`, the keys of the config that
 * lead to it, begins its message, and gives it a file and a line.
 */
export class StartError extends Error {
  /** What the process exits with: 2 for a config that must change, 1 for everything else. */
  readonly exitCode: 1 | 2 | 3
  written: Written
  readonly also: readonly Written[]

  constructor(text: string, { cause, at, of, exitCode = at || of ? 2 : 1, also = [] }: StartErrorOptions = {}) {
    super(at && at.length > 0 && !of ? `${formatPath(at)}: ${text}` : text, { cause })
    this.name = 'StartError'
    this.exitCode = exitCode
    this.written = { ...(at && { at }), ...(of && { of }) }
    this.also = also
  }

  /** The same mistake, which is here if it does not say itself where it is. */
  orAt(at: Path): this {
    if (!this.written.at && !this.written.of && at.length > 0) this.written = { at }
    return this
  }
}

/** What `part` gives; a StartError that it throws is reported, and the answer is undefined. */
export function reporting<Value>(report: Report, part: () => Value): Value | undefined {
  try {
    return part()
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    report(error)
    return undefined
  }
}
