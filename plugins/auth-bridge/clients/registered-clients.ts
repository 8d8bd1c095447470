// Dynamic registration (RFC 7591) without storage: the signed client id contains the metadata.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { isObject } from '../../../core/plugin.ts'

const KEPT = ['redirect_uris', 'client_name', 'client_uri', 'grant_types', 'token_endpoint_auth_method'] as const

const PREFIX = 'reg.'
const SIGNATURE_BYTES = 16
/** Distinguishes clients with equal metadata. */
const NONCE_BYTES = 9
/** Maximum characters of an id, which is part of URLs and tokens. */
const MAX_ID = 1_024
const MAX_SAID = 4_096

export type ClientMetadata = Readonly<Record<string, unknown>>

export type RegisteredClients = ReturnType<typeof createRegisteredClients>

const pick = (said: ClientMetadata) =>
  Object.fromEntries(KEPT.flatMap(name => (said[name] === undefined ? [] : [[name, said[name]]])))

export function createRegisteredClients(keys: readonly Buffer[]) {
  const [first] = keys
  if (!first) throw new Error('there is no key to sign with')
  const signed = (key: Buffer, body: string) =>
    createHmac('sha256', key).update(`client ${body}`).digest().subarray(0, SIGNATURE_BYTES)

  function read(id: string): { readonly key: Buffer; readonly said: ClientMetadata } | undefined {
    if (!id.startsWith(PREFIX) || id.length > MAX_ID) return undefined
    const [body = '', signature = '', ...more] = id.slice(PREFIX.length).split('.')
    const given = Buffer.from(signature, 'base64url')
    // Rejects non-canonical base64url.
    if (more.length > 0 || given.length !== SIGNATURE_BYTES || given.toString('base64url') !== signature)
      return undefined
    const key = keys.find(one => timingSafeEqual(signed(one, body), given))
    if (!key) return undefined
    const said: unknown = JSON.parse(
      inflateRawSync(Buffer.from(body, 'base64url'), { maxOutputLength: MAX_SAID }).toString(),
    )
    return isObject(said) ? { key, said } : undefined
  }

  const secretBy = (key: Buffer, id: string) => createHmac('sha256', key).update(`secret ${id}`).digest('base64url')

  return {
    /** Throws an Error for the client if the metadata is too long. */
    idOf(said: ClientMetadata): string {
      const text = JSON.stringify({ ...pick(said), nonce: randomBytes(NONCE_BYTES).toString('base64url') })
      const body = Buffer.byteLength(text) > MAX_SAID ? '' : deflateRawSync(text, { level: 9 }).toString('base64url')
      const id = `${PREFIX}${body}.${signed(first, body).toString('base64url')}`
      if (body === '' || id.length > MAX_ID)
        throw new Error('it says too much of itself: fewer or shorter redirect_uris')
      return id
    },
    secretOf: (id: string): string => secretBy(read(id)?.key ?? first, id),
    find(id: string): ClientMetadata | undefined {
      const found = read(id)
      if (!found) return undefined
      const {
        key,
        said: { nonce: _, ...said },
      } = found
      const method = said['token_endpoint_auth_method'] ?? 'client_secret_basic'
      return { ...said, client_id: id, ...(method !== 'none' && { client_secret: secretBy(key, id) }) }
    },
  }
}
