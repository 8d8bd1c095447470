// Records of finished requests for observers, safe to log: no tokens, arguments or session ids; texts are limited.
import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../http/clock.ts'
import { attributionOf } from '../../http/describe-thrown.ts'
import type { HostError } from '../../http/errors.ts'
import { requestIdIn } from '../../http/request-target.ts'
import type { Timeline } from '../../kernel/endpoint.ts'
import type { Pseudonyms } from '../../kernel/pseudonyms.ts'
import type { Route } from '../../kernel/route.ts'
import type { User } from '../../kernel/user.ts'
import type { ItemKind } from '../definitions/catalog-item.ts'
import { findResource } from '../methods/resources.ts'
import { plainText } from '../plain-text.ts'
import { isRevision } from '../wire/revisions.ts'
import type { Call, ClientInfo, Offer, UpstreamNote } from './call.ts'

/** `refused`: rejected before it became a call. `cancelled`: the client no longer waits. */
export type Outcome = 'ok' | 'input_required' | 'tool_error' | 'error' | 'refused' | 'cancelled'

/** Replaces unknown names, which clients can send in any number. */
export const OTHER = '_OTHER'

/** A finished request, as observers receive it. */
export interface CallRecord {
  /** Undefined for a refused request and for HTTP requests without a call, such as a notification, stream or page. */
  readonly call: Call | undefined
  readonly outcome: Outcome
  /** The error sent to the client, for `error` and `refused`. `cause` is the original error, for logs only. */
  readonly error: HostError | undefined
  readonly refusedBy: string | undefined
  /** Start, milliseconds since the epoch. */
  readonly at: number
  /** Time until the response is ready; without a call, until the HTTP response is closed. */
  readonly milliseconds: number
  /** The configured path, such as `/t/:category`; undefined outside of routes. */
  readonly route: string | undefined
  /** The JSON-RPC method; `_OTHER` if unknown to the route, undefined if none was read. */
  readonly method: string | undefined
  /** The definition's name or URI template; `_OTHER` if there is none. */
  readonly item: { readonly kind: ItemKind; readonly name: string } | undefined
  readonly revision: string | undefined
  readonly transport: string | undefined
  readonly asked: readonly string[]
  readonly upstream: UpstreamNote | undefined
  /** The client's IP address according to trusted proxies; otherwise a transport name such as `stdio`. */
  readonly ip: string
  readonly http: { readonly verb: string; readonly status: number } | undefined
  /** From the client: 64 printable characters of its name, 32 of its version. */
  readonly client: { readonly name: string; readonly version: string } | undefined
  /** A pseudonym, the same on every node with the same secrets. */
  readonly user: string | undefined
  /** 64 printable characters. */
  readonly oauthClient: string | undefined
  readonly session: string | undefined
  readonly requestId: string | undefined
  /** 32 hexadecimal digits, from the span, else from `_meta.traceparent` or the header. */
  readonly traceId: string | undefined
  /** Content-Length of a completely received body; for a batch, of the whole body. */
  readonly bytesIn: number | undefined
  /** Bytes of the response, without earlier messages. */
  readonly bytesOut: number | undefined
  /** Set if an observer created it. */
  readonly timeline?: Timeline | undefined
}

export interface CallStart
  extends Omit<
    CallRecord,
    'call' | 'outcome' | 'error' | 'refusedBy' | 'milliseconds' | 'http' | 'bytesOut' | 'asked' | 'upstream'
  > {
  readonly call: Call
}

export interface RecordSettings {
  readonly clock: Clock
  has(method: string, route: object): boolean
  readonly pseudonyms: Pseudonyms
  isSessionOf(id: string, owner: { readonly route: string; readonly user: User | undefined }): boolean
  readonly tracer?: Tracer
}

const shortText = (text: unknown, most: number): string => (typeof text === 'string' ? plainText(text, most) : '')

/** W3C Trace Context, version 00. All-zero ids are invalid. */
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}$/

const traceIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? TRACEPARENT.exec(value)?.[1] : undefined

interface Tracer {
  traceIdOf?(call: Call): string | undefined
}

export const traceIdOf = (call: Call, tracer: Tracer): string | undefined =>
  tracer.traceIdOf?.(call) ?? traceIn(call.meta['traceparent']) ?? traceIn(call.headers['traceparent'])

type Origin = Pick<Offer, 'ip' | 'sessionId'> & { readonly route: { readonly path: string } | undefined }

interface RecordedRequest extends Pick<CallRecord, 'method' | 'revision' | 'timeline'> {
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly user: User | undefined
  readonly client: ClientInfo | undefined
  readonly offer: Origin
  readonly session: { readonly transport?: string | undefined } | undefined
}

export interface RefusedRequest
  extends Omit<RecordedRequest, 'offer' | 'session'>,
    Omit<Origin, 'route'>,
    Pick<CallRecord, 'transport'> {
  readonly error: HostError
  readonly route: Route
}

function itemOf({ method, params, view }: Call): CallRecord['item'] {
  const named = (kind: 'tools' | 'prompts', name: unknown) => ({
    kind,
    name: typeof name === 'string' && view[kind].has(name) ? name : OTHER,
  })
  const resource = (uri: unknown) => ({
    kind: 'resources' as const,
    name: (typeof uri === 'string' ? findResource(view, uri)?.item.key : undefined) ?? OTHER,
  })
  switch (method) {
    case 'tools/call':
      return named('tools', params['name'])
    case 'prompts/get':
      return named('prompts', params['name'])
    case 'resources/read':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return resource(params['uri'])
    case 'completion/complete': {
      const { type, name, uri } = Object(params['ref'])
      if (type === 'ref/prompt') return named('prompts', name)
      const isFamily = view.templates.some(({ key }) => key === uri)
      return { kind: 'resources', name: isFamily ? uri : OTHER }
    }
    default:
      return undefined
  }
}

const NOTHING: readonly string[] = []

interface Recorded extends Partial<Pick<CallRecord, 'outcome' | 'error' | 'milliseconds' | 'http' | 'bytesOut'>> {
  /** Start time from `clock.monotonic()`. Default: now. */
  readonly began?: number
  readonly isCut?: boolean
}

export class RequestRecord implements CallRecord {
  readonly call: Call | undefined
  outcome: Outcome
  error: HostError | undefined
  milliseconds: number
  readonly began: number
  readonly http: CallRecord['http']
  readonly #request: RecordedRequest
  readonly #recorded: Recorded
  readonly #settings: RecordSettings
  #at: number | undefined

  constructor(settings: RecordSettings, request: RecordedRequest, recorded: Recorded, call?: Call) {
    this.call = call
    this.outcome = recorded.outcome ?? 'ok'
    this.error = recorded.error
    this.milliseconds = recorded.milliseconds ?? 0
    this.began = recorded.began ?? settings.clock.monotonic()
    this.http = recorded.http
    this.#request = request
    this.#recorded = recorded
    this.#settings = settings
  }
  /** Computed on demand, because reading the clock is a large part of a record's cost. */
  get at() {
    const { clock } = this.#settings
    this.#at ??= clock.now() - (clock.monotonic() - this.began)
    return this.#at
  }
  get route() {
    return this.#request.offer.route?.path
  }
  get ip() {
    return this.#request.offer.ip
  }
  get transport() {
    return this.#request.session?.transport
  }
  get method() {
    const { method } = this.#request
    const { route } = this.#request.offer
    return method === undefined || (route && this.#settings.has(method, route)) ? method : OTHER
  }
  get revision() {
    const { revision } = this.#request
    // An unknown protocol version is untrusted client text.
    return isRevision(revision) ? revision : undefined
  }
  get item() {
    return this.call && itemOf(this.call)
  }
  get client() {
    const info = this.#request.client?.info
    return info && { name: shortText(info.name, 64), version: shortText(info.version, 32) }
  }
  get refusedBy() {
    return this.error && (attributionOf(this.error).plugin ?? 'mcp-host')
  }
  get user() {
    const { user } = this.#request
    return user && this.#settings.pseudonyms.user(user)
  }
  get oauthClient() {
    const id = this.#request.user?.clientId
    return id === undefined ? undefined : shortText(id, 64)
  }
  get session() {
    const { user, offer } = this.#request
    const { sessionId: id, route } = offer
    const { isSessionOf, pseudonyms } = this.#settings
    if (id === undefined) return undefined
    // Without a Call, the id is untrusted client text.
    const isOwn = !this.http || (route && isSessionOf(id, { route: route.path, user }))
    return isOwn ? pseudonyms.session(id) : undefined
  }
  get requestId() {
    return requestIdIn(this.#request.headers)
  }
  get traceId() {
    const { tracer } = this.#settings
    return this.call && tracer ? traceIdOf(this.call, tracer) : traceIn(this.#request.headers['traceparent'])
  }
  get bytesIn() {
    return this.#recorded.isCut ? undefined : byteCount(this.#request.headers['content-length'])
  }
  get bytesOut() {
    const response = this.call?.notes.response
    return response === undefined
      ? this.#recorded.bytesOut
      : typeof response === 'string'
        ? Buffer.byteLength(response)
        : response.bytes.length
  }
  get asked() {
    return this.call?.notes.asked ?? NOTHING
  }
  get timeline() {
    return this.call ? this.call.notes.timeline : this.#request.timeline
  }
  get upstream() {
    return this.call?.notes.upstream
  }
}

export function byteCount(length: unknown): number | undefined {
  const count = Number(length)
  return Number.isSafeInteger(count) ? count : undefined
}
