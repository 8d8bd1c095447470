// Whose a session is, whether a request comes from the same, and what of it may be written down.
import type { IncomingHttpHeaders } from 'node:http'
import type { RequestFacts } from '../mcp/call.ts'
import { holderOf } from '../mcp/holder.ts'
import type { Owner } from './session-id.ts'
import type { SessionOpening } from './session-record.ts'

/** Who comes, and where. */
export type Caller = Pick<RequestFacts, 'route' | 'params' | 'user' | 'ip' | 'admitted'>

export const ownerOf = ({ route, user }: Caller): Owner => ({ route: route.path, user })

export const sameParams = (a: Caller['params'], b: Caller['params']) =>
  Object.keys({ ...a, ...b }).every(name => a[name] === b[name])

const SECRET_HEADERS = new Set(['authorization', 'cookie', 'proxy-authorization'])

/** What may be written down of a request's headers. */
export const withoutCredentials = (headers: IncomingHttpHeaders): IncomingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !SECRET_HEADERS.has(name)))

const NO_HEADERS: IncomingHttpHeaders = Object.freeze({})

/** What a session is opened with, as it may be written down; its headers only where another node may need them. */
export const openingOf = (facts: RequestFacts, transport: string, shared: boolean): SessionOpening => ({
  transport,
  route: facts.route.path,
  params: facts.params,
  holder: holderOf(facts),
  user: facts.user,
  ip: facts.ip,
  headers: shared ? withoutCredentials(facts.headers) : NO_HEADERS,
})
