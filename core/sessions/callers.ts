// Whose a session is, and whether a request comes from the same.
import type { RequestFacts } from '../call.ts'
import type { SessionOpening } from '../cluster/session-store.ts'
import { withoutCredentials } from '../cluster/without-credentials.ts'
import type { Owner } from './session-id.ts'

export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip'>

export const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

export const holderOf = ({ user, ip }: Caller) =>
  user ? JSON.stringify([user.issuer ?? '', user.subject]) : `address ${ip}`

export const sameUser = (one: Caller['user'], other: Caller['user']) =>
  one?.issuer === other?.issuer && one?.subject === other?.subject

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
