// Signed session ids with an owner digest, so that foreign ids are rejected without a store request. Layout: version,
// key id, 128 random bits, time, HMAC of route + user, 4 unused bytes, HMAC over all (41 + 16 bytes).
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { type UserName, userKey } from '../kernel/user.ts'

const VERSION = 1
const OWNER_BYTES = 12
const MAC_BYTES = 16
const OFFSETS = { keyId: 1, random: 3, time: 19, owner: 25, unused: 37, mac: 41 } as const
const LENGTH = OFFSETS.mac + MAC_BYTES

export interface Owner {
  readonly route: string
  readonly user: UserName | undefined
}

export interface SessionIds {
  create(owner: Owner, now?: number): string
  /** `createdAt`: milliseconds since the epoch. */
  verify(id: string): { readonly createdAt: number; isOwnedBy(owner: Owner): boolean } | undefined
}

const hmac = (key: Buffer, data: Buffer | string) => createHmac('sha256', key).update(data).digest()

const keyIdOf = (key: Buffer) => hmac(key, 'key id').subarray(0, 2)

const ownerMac = (key: Buffer, { route, user }: Owner) =>
  hmac(key, JSON.stringify(user ? [route, userKey(user)] : [route])).subarray(0, OWNER_BYTES)

/** The first key signs; all keys verify. */
export function createSessionIds(keys: readonly Buffer[]): SessionIds {
  const [signing] = keys
  if (!signing) throw new Error('no key to sign session ids')
  const byKeyId = new Map(keys.map(key => [keyIdOf(key).toString('hex'), key]))
  const keyId = keyIdOf(signing)

  return {
    create(owner, now = Date.now()) {
      const id = Buffer.alloc(LENGTH)
      id[0] = VERSION
      keyId.copy(id, OFFSETS.keyId)
      randomBytes(OFFSETS.time - OFFSETS.random).copy(id, OFFSETS.random)
      id.writeUIntBE(now, OFFSETS.time, OFFSETS.owner - OFFSETS.time)
      ownerMac(signing, owner).copy(id, OFFSETS.owner)
      hmac(signing, id.subarray(0, OFFSETS.mac)).copy(id, OFFSETS.mac, 0, MAC_BYTES)
      return id.toString('base64url')
    },
    verify(text) {
      const id = Buffer.from(text, 'base64url')
      if (id.length !== LENGTH || id[0] !== VERSION || id.toString('base64url') !== text) return undefined
      const key = byKeyId.get(id.subarray(OFFSETS.keyId, OFFSETS.random).toString('hex'))
      if (!key) return undefined
      const mac = hmac(key, id.subarray(0, OFFSETS.mac)).subarray(0, MAC_BYTES)
      if (!timingSafeEqual(mac, id.subarray(OFFSETS.mac))) return undefined
      return {
        createdAt: id.readUIntBE(OFFSETS.time, OFFSETS.owner - OFFSETS.time),
        isOwnedBy: owner => timingSafeEqual(ownerMac(key, owner), id.subarray(OFFSETS.owner, OFFSETS.unused)),
      }
    },
  }
}

/** Identifies a session in stores and node messages, which must not contain the session id. 22 characters. */
export const digestOf = (id: string): string => createHash('sha256').update(id).digest().toString('base64url', 0, 16)

/** The part of a session id for logs: too short to use the session. */
export const shortId = (id: string): string => `${id.slice(0, 12)}…`

export const partitionOf = (digest: string): string => `session:${digest}`
