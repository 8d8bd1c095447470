// Seals the state of multi round-trip requests, so that any node with the secret can continue (basic/patterns/mrtr).
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { attempt } from '../../http/describe-thrown.ts'
import { HostError } from '../../http/errors.ts'
import '../wire/error-kinds.ts'
import type { ElicitParams, SampleParams } from '../wire/protocol.ts'

export const STATE_LIFETIME = 600_000
export const MAX_STATE_LENGTH = 65_536

const VERSION = 'v1'
const ALGORITHM = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16

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
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, iv).setAAD(Buffer.from(binding))
  const payload: Payload = { expires: now + STATE_LIFETIME, state }
  const sealed = Buffer.concat([iv, cipher.update(JSON.stringify(payload)), cipher.final(), cipher.getAuthTag()])
  const text = `${VERSION}.${sealed.toString('base64url')}`
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
  const exact = sealed.toString('base64url') === body
  if (version !== VERSION || rest.length > 0 || !exact || sealed.length <= IV_BYTES + TAG_BYTES) {
    throw refuse('was not issued by this host')
  }
  for (const key of keys) {
    const payload = decrypt(sealed, binding, key)
    if (payload === undefined) continue
    if (payload.expires < now) throw refuse('has expired; send the request again without it')
    return payload.state
  }
  throw refuse('was altered, or belongs to another request, user or server')
}

function decrypt(sealed: Buffer, binding: string, key: Buffer): Payload | undefined {
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(binding))
    .setAuthTag(sealed.subarray(-TAG_BYTES))
  return attempt(() => {
    const text = Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
    return JSON.parse(text.toString()) as Payload
  })
}
