// A plugin that takes a token's word for who its bearer is: the token is a user as JSON, in Base64. And what such
// callers are told.

import { HostError, type User } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { authorizeRoute } from '../../../core/plugin.ts'
import { legacy, modern, type RpcMessage } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'

/** Users by their token, so that one token is one user object, as with verified tokens that are cached. */
export const createBearerJson = (read: (user: User) => User = user => user) => {
  const users = new Map<string, User>()
  return definePlugin<Record<never, never>>({
    options: { type: 'object', additionalProperties: false, properties: {} },
    provides: ['user', 'authorize'],
    setup(host) {
      host.authenticate(async (ctx, next) => {
        const [, token] = /^Bearer (.+)$/.exec(ctx.req.headers.authorization ?? '') ?? []
        if (token === 'bad') throw new HostError('unauthorized', { detail: 'the token is bad' })
        if (token !== undefined) {
          const user = users.get(token) ?? read(JSON.parse(Buffer.from(token, 'base64').toString()))
          users.set(token, user)
          ctx.state.user = user
        }
        await next()
      })
      host.authorize(authorizeRoute(host))
    },
  })
}

export const bearerJson = createBearerJson()

export const tokenOf = (user: Partial<User> = {}): string =>
  Buffer.from(JSON.stringify({ subject: 'ann', scopes: [], roles: [], claims: {}, ...user })).toString('base64')

/** The headers of a caller; undefined: an anonymous one. */
export const as = (user: Partial<User> | undefined): Record<string, string> =>
  user ? { Authorization: `Bearer ${tokenOf(user)}` } : {}

export interface Told {
  readonly status: number
  readonly challenge: string | undefined
  readonly message: RpcMessage
}

/** One way to ask a host: a revision, in a session or without. */
export interface Asker {
  readonly name: string
  readonly isSession: boolean
  /** Asks as this caller; a session is opened for each asker. */
  of(url: string, user: Partial<User> | undefined): Promise<(method: string, params?: object) => Promise<Told>>
}

export const ASKERS: readonly Asker[] = [
  {
    name: '2026-07-28',
    isSession: false,
    of: async (url, user) => async (method, params) => {
      const { status, headers, message } = await modern(url, method, { ...params }, { headers: as(user) })
      return { status, challenge: headers.get('www-authenticate') ?? undefined, message }
    },
  },
  {
    name: 'a session of 2025-11-25',
    isSession: true,
    async of(url, user) {
      const client = await openSession(url, { headers: as(user) })
      return async (method, params) => {
        const { status, headers, message } = await client.request(method, params)
        return { status, challenge: headers['www-authenticate'], message }
      }
    },
  },
  {
    name: '2025-11-25 without sessions',
    isSession: false,
    of: async (url, user) => async (method, params) => {
      const { status, headers, message } = await legacy(
        `${url}/stateless`,
        method,
        { ...params },
        { headers: as(user) },
      )
      return { status, challenge: headers.get('www-authenticate') ?? undefined, message }
    },
  },
]

/** The names of one list, as this caller is told. */
export async function namesOf(ask: (method: string) => Promise<Told>, method: string, list: string): Promise<string[]> {
  return (await ask(method)).message.result[list].map(({ name }: RpcMessage) => name)
}
