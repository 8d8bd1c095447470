// Whom what a caller makes the host hold is counted for: sessions, streams, calls that wait.
import { userKey } from '../kernel/user.ts'
import type { RequestFacts } from './call.ts'

/** Whom what is held is counted for. */
export const holderOf = ({ user, ip }: Pick<RequestFacts, 'user' | 'ip'>): string =>
  user ? userKey(user) : `address ${ip}`
