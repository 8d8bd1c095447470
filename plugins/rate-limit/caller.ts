// Whose requests count together: a user across tokens, else an address in its one spelling. Nothing that a client can write
// as it likes, such as a header or a session id, is part of it.
import { hash } from 'node:crypto'
import type { User } from '../../core/index.ts'
import { holderOf } from '../../core/transport.ts'
import { addressKey } from '../families/address/index.ts'

/** Short, and nothing that anybody could read a name in. */
const digest = (text: string) => hash('sha256', text, 'base64url').slice(0, 22)

const userKeys = new WeakMap<User, string>()

function keyOfUser(user: User): string {
  const known = userKeys.get(user)
  if (known !== undefined) return known
  const key = digest(holderOf({ user, ip: '' }))
  userKeys.set(user, key)
  return key
}

/** The user, else the address that stands for it. */
export const callerKey = (user: User | undefined, ip: string, prefix: number): string =>
  user ? keyOfUser(user) : addressKey(ip, prefix)

/** The OAuth client that the user came with; undefined where there is none. */
export const clientKey = (user: User | undefined): string | undefined =>
  user?.clientId === undefined ? undefined : digest(JSON.stringify([user.issuer ?? '', user.clientId]))
