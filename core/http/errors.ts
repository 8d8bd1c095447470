// All errors sent to clients (kind, HTTP status, JSON-RPC code, text), and StartError for configuration and startup errors.

import { errorText, isBranded } from './describe-thrown.ts'

const MAX_DETAIL = 4_096

/** HTTP status, JSON-RPC code and text. `page`: a browser gets the HTML page of the endpoint instead. */
export interface ErrorKind {
  readonly status: number
  readonly code: number
  readonly message: string
  readonly page?: boolean
}

export const errorKind = (status: number, code: number, message: string, page = false): ErrorKind => ({
  status,
  code,
  message,
  page,
})

const HTTP_KINDS = {
  parseError: errorKind(400, -32700, 'Parse error'),
  invalidRequest: errorKind(400, -32600, 'Invalid request'),
  internal: errorKind(500, -32603, 'Internal error'),
  unauthorized: errorKind(401, -32600, 'Authentication required', true),
  forbidden: errorKind(403, -32000, 'Forbidden'),
  hostNotAllowed: errorKind(403, -32000, 'Host not allowed'),
  originNotAllowed: errorKind(403, -32000, 'Origin not allowed'),
  notFound: errorKind(404, -32600, 'Not found'),
  methodNotAllowed: errorKind(405, -32600, 'Method not allowed', true),
  notAcceptable: errorKind(406, -32000, 'Not acceptable', true),
  conflict: errorKind(409, -32000, 'Conflict'),
  payloadTooLarge: errorKind(413, -32000, 'Payload too large'),
  unsupportedMediaType: errorKind(415, -32000, 'Unsupported media type'),
  tooManyRequests: errorKind(429, -32600, 'Too many requests'),
  unavailable: errorKind(503, -32603, 'Service unavailable'),
}

/** Layers and plugins extend this interface with their kinds and add them with `addErrorKinds`. */
export interface ErrorKinds extends Record<keyof typeof HTTP_KINDS, ErrorKind> {}

/** The kinds of client errors: stable codes in responses, logs, audit and metrics. */
export type HostErrorKind = keyof ErrorKinds

/** All kinds with status, JSON-RPC code and text. */
export const ERROR_KINDS: ErrorKinds = Object.assign(Object.create(null), HTTP_KINDS)

export const addErrorKinds = (kinds: Partial<ErrorKinds>): void => void Object.assign(ERROR_KINDS, kinds)

/** Returns undefined for a kind of another copy of this module. */
export const knownKind = (kind: string): ErrorKind | undefined =>
  (ERROR_KINDS as unknown as Readonly<Record<string, ErrorKind | undefined>>)[kind]

interface HostErrorOptions {
  /** One sentence for the client, at most 4,096 characters. Must not contain secrets or data of other users. */
  detail?: string | undefined
  data?: unknown
  headers?: Record<string, string> | undefined
  /** The reason for logs and observers; clients do not receive it. */
  reason?: string | undefined
  cause?: unknown
}

const BRAND = Symbol.for('mcp-host.HostError')

/** An error that is sent to the client. Any other thrown value is logged as a bug, and the client gets a generic 500. */
export class HostError extends Error {
  readonly kind: HostErrorKind
  readonly detail: string | undefined
  readonly data: unknown
  readonly headers: Record<string, string> | undefined
  readonly reason: string | undefined
  #status: number | undefined

  constructor(kind: HostErrorKind, { detail, data, headers, reason, cause }: HostErrorOptions = {}) {
    const text = detail === undefined || detail.length <= MAX_DETAIL ? detail : `${detail.slice(0, MAX_DETAIL)}…`
    // Untyped JavaScript can pass an unknown kind.
    const known = knownKind(kind) ? kind : 'internal'
    const { message } = ERROR_KINDS[known]
    super(text === undefined ? message : `${message}: ${text}`, { cause })
    this.name = 'HostError'
    this.kind = known
    this.detail = text
    this.data = data
    this.headers = headers
    this.reason = reason
    Object.defineProperty(this, BRAND, { value: true })
  }

  get status(): number {
    return this.#status ?? ERROR_KINDS[this.kind].status
  }

  get code(): number {
    return ERROR_KINDS[this.kind].code
  }

  /** The same error with HTTP status 200, for the response to a valid request. */
  withStatus200(): HostError {
    const error = new HostError(this.kind, this)
    error.#status = 200
    return error
  }

  /** Also true for a HostError of another copy of this module, which a config can load. */
  static is(value: unknown): value is HostError {
    return isBranded(value, BRAND)
  }
}

/** Statuses sent to clients of every protocol version: sign in, or retry later. */
const STATUSES_FOR_ALL_VERSIONS: ReadonlySet<number> = new Set([401, 403, 429, 503])

/** Returns the HTTP status of an error. `rules`: of the message (mostly 200 in legacy versions). */
export function statusOf(
  { status }: { readonly status: number },
  rules?: { readonly errorsByStatus: boolean },
): number {
  if (!rules) return status === 200 ? 400 : status
  return rules.errorsByStatus || STATUSES_FOR_ALL_VERSIONS.has(status) ? status : 200
}

/** True if a retry can succeed because another node or a store did not respond. */
export const isUnavailable = (thrown: unknown): boolean => HostError.is(thrown) && thrown.kind === 'unavailable'

export const shuttingDown = (): HostError =>
  new HostError('unavailable', {
    detail: 'the server is shutting down',
    headers: { 'Retry-After': '1', Connection: 'close' },
  })

export { errorText }

export type Path = readonly (string | number)[]

/** A location: config keys or, with `of`, keys of that definition. */
export interface ConfigLocation {
  readonly at?: Path
  readonly of?: object
}

/** Collects a problem, so that one run reports all of them. A warning does not stop startup. */
export type Report = (error: StartError, severity?: 'error' | 'warning') => void

export const stopAtFirst: Report = error => {
  throw error
}

/** Formats a path: `routes['/admin'].toolsets[0]`. The empty path is `(config)`. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(config)'
  return path
    .map(key => (typeof key === 'number' ? `[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `['${key}']`))
    .join('')
    .replace(/^\./, '')
}

interface StartErrorOptions extends ConfigLocation {
  cause?: unknown
  /** Default: 2 with a location, otherwise 1. 3: `audit verify` has no key. */
  exitCode?: 1 | 2 | 3
  also?: readonly ConfigLocation[]
}

/** A configuration or startup error, shown to the operator without a stack. `at` adds the config path, file and line. */
export class StartError extends Error {
  /** Stable, such as `MH1203`; docs/codes.md lists those of mcp-host. */
  readonly code: string
  /** 2 if the config must change, else 1. */
  readonly exitCode: 1 | 2 | 3
  written: ConfigLocation
  readonly also: readonly ConfigLocation[]

  constructor(
    code: string,
    text: string,
    { cause, at, of, exitCode = at || of ? 2 : 1, also = [] }: StartErrorOptions = {},
  ) {
    super(at && at.length > 0 && !of ? `${formatPath(at)}: ${text}` : text, { cause })
    this.name = 'StartError'
    this.code = code
    this.exitCode = exitCode
    this.written = { ...(at && { at }), ...(of && { of }) }
    this.also = also
  }

  /** Sets the config path, unless the error has a location. */
  locatedAt(at: Path): this {
    if (!this.written.at && !this.written.of && at.length > 0) this.written = { at }
    return this
  }
}

export function tryReport<Value>(report: Report, part: () => Value): Value | undefined {
  try {
    return part()
  } catch (error) {
    if (!(error instanceof StartError)) throw error
    report(error)
    return undefined
  }
}
