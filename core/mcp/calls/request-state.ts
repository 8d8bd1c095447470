// Seals the state of multi round-trip requests, so that any node with the secret can continue (basic/patterns/mrtr).
import { createHash } from 'node:crypto'
import { HostError } from '../../http/errors.ts'
import { decryptText, encryptText } from '../../kernel/secrets.ts'
import '../wire/error-kinds.ts'
import type { ElicitParams, SampleParams } from '../wire/protocol.ts'

export const STATE_LIFETIME = 600_000
export const MAX_STATE_LENGTH = 65_536

const VERSION = 'v1'

export interface Recorded {
  /** Digest of the request: a response never applies to another request. */
  readonly question: string
  /** Undefined while the request is open. */
  readonly answer?: unknown
}

export type RequestState = Readonly<Record<string, Recorded>>

export const digest = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(value) ?? 'undefined')
    .digest('base64url')
    .slice(0, 22)

/** A request of a handler to its client. */
export type InputRequest =
  | { readonly method: 'elicitation/create'; readonly params: ElicitParams }
  | { readonly method: 'sampling/createMessage'; readonly params: SampleParams }
  | { readonly method: 'roots/list'; readonly params: Record<string, never> }

/** A round that waits for responses. */
export interface OpenRound {
  readonly requests: Readonly<Record<string, InputRequest>>
  readonly state: unknown
}

/** `asked`: the handler runs from its start. `round`: the handler continues. */
export type SealedState = { readonly asked: RequestState } | { readonly round: OpenRound }

interface Payload {
  readonly expires: number
  readonly state: SealedState
}

/** Seals `state` for requests with this `binding`. Throws `stateTooLarge` above 64 KiB. */
export function sealState(state: SealedState, binding: string, key: Buffer, now = Date.now()): string {
  const payload: Payload = { expires: now + STATE_LIFETIME, state }
  const text = `${VERSION}.${encryptText(key, binding, JSON.stringify(payload)).toString('base64url')}`
  if (text.length > MAX_STATE_LENGTH) {
    throw new HostError('stateTooLarge', { detail: `${text.length} characters, at most ${MAX_STATE_LENGTH}` })
  }
  return text
}

/** Throws `invalidParams` for a state that was altered, has expired, or belongs to another request or secret. */
export function openState(text: unknown, binding: string, keys: readonly Buffer[], now = Date.now()): SealedState {
  const refuse = (why: string) => new HostError('invalidParams', { detail: `requestState ${why}` })
  if (typeof text !== 'string' || text.length > MAX_STATE_LENGTH) throw refuse('was not issued by this host')
  const [version, body = '', ...rest] = text.split('.')
  const sealed = Buffer.from(body, 'base64url')
  const exact = body !== '' && sealed.toString('base64url') === body
  if (version !== VERSION || rest.length > 0 || !exact) throw refuse('was not issued by this host')
  for (const key of keys) {
    const payload = decryptText(key, binding, sealed)
    if (payload === undefined) continue
    const { expires, state } = JSON.parse(payload) as Payload
    if (expires < now) throw refuse('has expired; send the request again without it')
    return state
  }
  throw refuse('was altered, or belongs to another request, user or server')
}
