// Whom what a caller makes the host hold is counted for: sessions, streams, calls that wait.
import { addressKey } from '../http/forwarded.ts'
import { userKey } from '../kernel/user.ts'
import type { RequestFacts } from './call.ts'

/** Bits of an IPv6 address that are one caller's: who has one address of a /64 has them all. */
const NETWORK = 64

/** Whom what is held is counted for: a user, and of anonymous callers the network. */
export const holderOf = ({ user, ip }: Pick<RequestFacts, 'user' | 'ip'>): string =>
  user ? userKey(user) : `address ${addressKey(ip, NETWORK)}`
