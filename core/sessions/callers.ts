// Whose a session is, and whether a request comes from the same.

import { userKey } from '../kernel/user.ts'
import type { RequestFacts } from '../mcp/call.ts'
import type { SessionOpening } from './nodes/session-store.ts'
import { withoutCredentials } from './nodes/without-credentials.ts'
import type { Owner } from './session-id.ts'

export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'>

export const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

/** Whom what is held is counted for. */
export const holderOf = ({ user, ip }: Pick<Caller, 'user' | 'ip'>): string => (user ? userKey(user) : `address ${ip}`)

export const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

/** What a session was opened with, as it may be written down. */
export const openingOf = (
  { route, params, user, ip, headers }: RequestFacts,
  transport: string,
  holder: string,
): SessionOpening => ({
  transport,
  route: route.path,
  params,
  holder,
  user,
  ip,
  headers: withoutCredentials(headers),
})
