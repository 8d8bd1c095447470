// What observers are told of a request that is over: who asked for what, how long it took, what came of it. It is safe to
// write down: no token, no argument, no whole session id, and every text is bounded. What is not asked for costs nothing.
import type { IncomingHttpHeaders } from 'node:http'
import { blamed } from '../http/describe-thrown.ts'
import type { HostError } from '../http/errors.ts'
import { requestIdIn } from '../http/request-target.ts'
import type { User } from '../kernel/user.ts'
import type { Call, CallNotes, ClientFacts } from './call.ts'
import type { ItemKind } from './catalog-item.ts'
import type { Disguise } from './disguise.ts'
import { findResource } from './methods/resources.ts'
import { plainText } from './plain-text.ts'

/**
 * `input_required`: the handler asked the client; it runs again with the answers, in a call of its own (2026-07-28 basic/patterns/mrtr).
 * `tool_error`: a tool's own failure, a result with `isError`. `error`: a call that was refused or failed. `refused`: the
 * host refused a request before it was a call. `cancelled`: nobody waits for the answer any more, whatever it was.
 */
export type Outcome = 'ok' | 'input_required' | 'tool_error' | 'error' | 'refused' | 'cancelled'

/** In the place of a name that nothing on the server has: clients may invent as many as they like. */
export const OTHER = '_OTHER'

/** A request that is over. */
export interface CallRecord {
  /** Undefined for a request that became none: it was refused, or is of HTTP, and a notification, a stream, a page. */
  readonly call: Call | undefined
  readonly outcome: Outcome
  /** What the client was told, where `outcome` is `error` or `refused`; its `cause` is what was thrown, for the log alone. */
  readonly error: HostError | undefined
  /** Who refused it: a plugin's name, or `mcp-host`; undefined where nobody did. */
  readonly refusedBy: string | undefined
  /** When it began, milliseconds since the epoch. */
  readonly at: number
  /** A call: from when the transport handed it over to when its answer was there. Else: until the HTTP response was closed. */
  readonly milliseconds: number
  /** The route's path in the config, such as `/t/:category`; undefined outside of routes. */
  readonly route: string | undefined
  /** The JSON-RPC method; `_OTHER` for one that the route has not, undefined where none was read. */
  readonly method: string | undefined
  /** The tool, prompt or resource, as its definition calls it (a family by its URI template); `_OTHER` where there is none such. */
  readonly item: { readonly kind: ItemKind; readonly name: string } | undefined
  readonly revision: string | undefined
  /** The transport plugin of the session; undefined for a request without one. */
  readonly transport: string | undefined
  /** Methods of what the handler asked the client, such as `sampling/createMessage`. */
  readonly asked: readonly string[]
  /** The caller's address, as far as trusted proxies tell it; `stdio` and the like for transports without. */
  readonly ip: string
  /** Of an HTTP request that became no call; undefined for one message of several that was refused, or over no HTTP. */
  readonly http: { readonly verb: string; readonly status: number } | undefined
  /** What the client calls itself: 64 printable characters of its name, 32 of its version. Its own words. */
  readonly client: { readonly name: string; readonly version: string } | undefined
  /** Names the user without telling who it is: the same text for the same user, on every node with the same secrets. */
  readonly user: string | undefined
  /** The OAuth client: 64 printable characters. */
  readonly oauthClient: string | undefined
  /** Names the session without being its id. */
  readonly session: string | undefined
  /** `X-Request-Id`, as the client or a proxy gave it, where it is one; see `requestIdIn`. */
  readonly requestId: string | undefined
  /** The trace that the request belongs to: 32 hexadecimal digits, of its span, else of `_meta.traceparent` or of the header. */
  readonly traceId: string | undefined
  /** Bytes of the request's body, where it said how many and they came; of a batch, of all of it. */
  readonly bytesIn: number | undefined
  /** Bytes of the answer, without what came before it. */
  readonly bytesOut: number | undefined
}

/** A Call as it begins: its record, but for what comes of it. */
export interface CallStart
  extends Omit<
    CallRecord,
    'call' | 'outcome' | 'error' | 'refusedBy' | 'milliseconds' | 'http' | 'bytesOut' | 'asked'
  > {
  readonly call: Call
}

/** What a host knows beside the request. */
export interface RecordSettings {
  /** Whether a route has a method. */
  has(method: string, route: object): boolean
  readonly disguise: Disguise
  /** Whether we have signed it. */
  isSessionId(text: string): boolean
}

/** A text of others, cut, and without what steers a terminal or ends a line. */
const shortText = (text: unknown, most: number): string => (typeof text === 'string' ? plainText(text, most) : '')

/** W3C Trace Context, version 00: a trace and a span that are not zero. */
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}$/

const traceIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? TRACEPARENT.exec(value)?.[1] : undefined

/** What a client calls itself. */
export function clientOf(client: ClientFacts | undefined): CallRecord['client'] {
  const info = client?.info
  return info && { name: shortText(info.name, 64), version: shortText(info.version, 32) }
}

/** What tells of a call's span, where it has one. */
interface Tracer {
  traceIdOf?(call: Call): string | undefined
}

/** The trace that a call belongs to: that of its span, else what its message names, else its HTTP request. */
export const traceIdOf = (call: Call, tracer: Tracer): string | undefined =>
  tracer.traceIdOf?.(call) ?? traceIn(call.meta['traceparent']) ?? traceIn(call.headers['traceparent'])

/** What all records are made from. */
export interface Facts {
  readonly outcome: Outcome
  readonly error: HostError | undefined
  readonly at: number
  readonly milliseconds: number
}

/** Who asked, and with which headers. */
export interface Asker {
  readonly headers: Readonly<IncomingHttpHeaders>
  readonly user: User | undefined
}

/** What every record says in the same way. */
export abstract class Told implements Facts {
  outcome: Outcome
  error: HostError | undefined
  readonly at: number
  milliseconds: number
  readonly #asker: Asker
  protected readonly settings: RecordSettings

  constructor({ outcome, error, at, milliseconds }: Facts, asker: Asker, settings: RecordSettings) {
    this.outcome = outcome
    this.error = error
    this.at = at
    this.milliseconds = milliseconds
    this.#asker = asker
    this.settings = settings
  }
  get refusedBy() {
    return this.error && (blamed(this.error).plugin ?? 'mcp-host')
  }
  get user() {
    const { user } = this.#asker
    return user && this.settings.disguise.user(user)
  }
  get oauthClient() {
    const id = this.#asker.user?.clientId
    return id === undefined ? undefined : shortText(id, 64)
  }
  get requestId() {
    return requestIdIn(this.#asker.headers)
  }
  get traceId() {
    return traceIn(this.#asker.headers['traceparent'])
  }
  get bytesIn() {
    const length = Number(this.#asker.headers['content-length'])
    return Number.isSafeInteger(length) ? length : undefined
  }
}

/** Which definition a call is about, by the methods of the protocol that name one. */
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

/** A Call, made as it begins; its record once `end` was told what came of it. */
export class ObservedCall extends Told implements CallRecord {
  readonly call: Call
  readonly http = undefined
  readonly #notes: CallNotes
  readonly #tracer: Tracer

  constructor(call: Call, notes: CallNotes, settings: RecordSettings & { readonly tracer: Tracer }) {
    super({ outcome: 'ok', error: undefined, at: Date.now(), milliseconds: 0 }, call, settings)
    this.call = call
    this.#notes = notes
    this.#tracer = settings.tracer
  }
  end(outcome: Outcome, error: HostError | undefined, milliseconds: number) {
    this.outcome = outcome
    this.error = error
    this.milliseconds = milliseconds
  }
  get bytesOut() {
    return this.#notes.bytesOut
  }
  get asked() {
    return this.#notes.asked
  }
  get route() {
    return this.call.offer.route.path
  }
  get method() {
    const { method, offer } = this.call
    return this.settings.has(method, offer.route) ? method : OTHER
  }
  get item() {
    return itemOf(this.call)
  }
  get revision() {
    return this.call.revision
  }
  get transport() {
    return this.call.session?.transport
  }
  get ip() {
    return this.call.offer.ip
  }
  get client() {
    return clientOf(this.call.client)
  }
  get session() {
    const { sessionId } = this.call.offer
    return sessionId === undefined ? undefined : this.settings.disguise.session(sessionId)
  }
  override get traceId() {
    return traceIdOf(this.call, this.#tracer)
  }
}
