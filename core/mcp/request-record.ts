// Records of requests that became no Call: of HTTP requests, and of messages that were refused beside others. For observe.ts.
import type { HostError } from '../http/errors.ts'
import type { ClientFacts } from './call.ts'
import { type Asker, type CallRecord, clientOf, type Facts, OTHER, type RecordSettings, Told } from './call-record.ts'
import { REVISIONS } from './revisions.ts'

interface PlainFacts extends Facts, Asker, Pick<CallRecord, 'route' | 'ip' | 'http' | 'bytesOut'> {
  /** Of the session that it was let into. */
  readonly sessionId: string | undefined
  /** Whether all of its body came. */
  readonly isWhole: boolean
}

/** An HTTP request that became no Call. */
export class PlainRequest extends Told implements CallRecord {
  readonly call = undefined
  readonly method = undefined
  readonly item = undefined
  readonly client = undefined
  readonly revision = undefined
  readonly transport = undefined
  readonly asked: readonly string[] = []
  readonly route: string | undefined
  readonly ip: string
  readonly http: CallRecord['http']
  readonly #sessionId: string | undefined
  readonly #isWhole: boolean
  readonly bytesOut: number | undefined

  constructor(facts: PlainFacts, settings: RecordSettings) {
    super(facts, facts, settings)
    this.route = facts.route
    this.ip = facts.ip
    this.http = facts.http
    this.bytesOut = facts.bytesOut
    this.#sessionId = facts.sessionId
    this.#isWhole = facts.isWhole
  }
  override get bytesIn() {
    return this.#isWhole ? super.bytesIn : undefined
  }
  get session() {
    const { isSessionId, disguise } = this.settings
    const id = this.#sessionId
    return id !== undefined && isSessionId(id) ? disguise.session(id) : undefined
  }
}

/** A request of a client that was refused before it was a Call. */
export interface RefusedRequest extends Asker, Pick<CallRecord, 'ip' | 'revision' | 'transport'> {
  readonly error: HostError
  readonly route: { readonly path: string }
  /** As the message has it; undefined where it could not be read. */
  readonly method: string | undefined
  readonly client: ClientFacts | undefined
  readonly sessionId: string | undefined
}

/** A request that was refused before it was a Call, and that the record of no HTTP request tells of: one of a batch or of a line. */
export class RefusedMessage extends Told implements CallRecord {
  readonly call = undefined
  readonly http = undefined
  readonly item = undefined
  readonly bytesOut = undefined
  readonly asked: readonly string[] = []
  readonly #refused: RefusedRequest

  constructor(refused: RefusedRequest, settings: RecordSettings) {
    super({ outcome: 'refused', error: refused.error, at: Date.now(), milliseconds: 0 }, refused, settings)
    this.#refused = refused
  }
  get route() {
    return this.#refused.route.path
  }
  get method() {
    const { method, route } = this.#refused
    return method === undefined || this.settings.has(method, route) ? method : OTHER
  }
  get revision() {
    // One that we have not is a client's own words.
    return REVISIONS.find(known => known === this.#refused.revision)
  }
  get transport() {
    return this.#refused.transport
  }
  get ip() {
    return this.#refused.ip
  }
  get client() {
    return clientOf(this.#refused.client)
  }
  get session() {
    const { sessionId } = this.#refused
    return sessionId === undefined ? undefined : this.settings.disguise.session(sessionId)
  }
}
