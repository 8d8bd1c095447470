// The caller's token at the identity provider, refreshed before expiry.

import { LRUCache } from 'lru-cache'
import { loginExpired } from '../../core/auth.ts'
import { HostError, ToolError } from '../../core/index.ts'
import type { Services } from '../../core/internal.ts'
import type { Bridge } from './make.ts'
import type { Login, Renewed } from './people/logins.ts'
import { isUpstreamError, type ProviderTokens } from './upstream/upstream.ts'
import type { UpstreamCaller, UpstreamTokenRequest } from './upstream-context.ts'

const TOO_SHORT = 60_000
/** Maximum cached tokens of other scopes, and lifetime without expiry, milliseconds. */
const MAX_EXCHANGED = 1_000
const EXCHANGED_TTL = 300_000
const MAX_SCOPE = 1_024

const isGood = ({ expiresAt }: ProviderTokens) => expiresAt === undefined || expiresAt - Date.now() > TOO_SHORT

const unavailable = (detail: string) => new HostError('unavailable', { detail, headers: { 'Retry-After': '5' } })

const NOT_OURS = 'There is no token of the identity provider for this caller, who did not sign in through this host.'

export function createBridgeTokens({ logins, issuer, log }: Bridge, services: Services) {
  const exchanged = new LRUCache<string, ProviderTokens>({ max: MAX_EXCHANGED })

  async function loginOf(caller: UpstreamCaller, rejected: string | undefined): Promise<Login> {
    const { user } = caller
    const id = user?.issuer === issuer ? user.claims['sid'] : undefined
    if (typeof id !== 'string') throw new ToolError(NOT_OURS)
    const login = await logins.find(id)
    if (!login || login.person.subject !== user?.subject) throw loginExpired(services, caller, 'the login has ended')
    const isUsable = isGood(login.tokens) && login.tokens.accessToken !== rejected
    return isUsable ? login : settle(caller, await logins.renew(id))
  }

  function settle(caller: UpstreamCaller, renewed: Renewed): Login {
    if ('ended' in renewed) throw loginExpired(services, caller, renewed.ended)
    if ('unsure' in renewed) throw unavailable(renewed.unsure)
    const { login } = renewed
    const { expiresAt } = login.tokens
    if (expiresAt === undefined || expiresAt > Date.now()) return login
    // Without a refresh token the login ends with its access token.
    throw login.tokens.refreshToken === undefined
      ? loginExpired(services, caller, 'the token of the identity provider has expired')
      : unavailable('the identity provider is not available')
  }

  async function exchange(caller: UpstreamCaller, login: Login, scope: string, key: string): Promise<ProviderTokens> {
    try {
      const tokens = await logins.exchange(login.id, scope)
      if (!tokens) throw loginExpired(services, caller, 'the login has ended')
      const ttl = tokens.expiresAt === undefined ? EXCHANGED_TTL : tokens.expiresAt - Date.now()
      if (ttl > 0) exchanged.set(key, tokens, { ttl })
      return tokens
    } catch (error) {
      if (!isUpstreamError(error)) throw error
      log.warn(
        { code: 'MH2141', err: error, fix: error.fix, scope },
        'the identity provider issued no token for a tool',
      )
      if (error.fault === 'unavailable') throw unavailable('the identity provider does not respond')
      const fix = error.fix === undefined ? '' : ` ${error.fix}`
      throw new ToolError(`The identity provider issues no token for the scope "${scope}".${fix}`)
    }
  }

  return {
    async tokenFor(caller: UpstreamCaller, { scope, rejected }: UpstreamTokenRequest): Promise<string> {
      const login = await loginOf(caller, rejected)
      const wanted = [...new Set((scope ?? '').split(' ').filter(Boolean))].sort().join(' ')
      if (wanted === '') return login.tokens.accessToken
      if (wanted.length > MAX_SCOPE) throw new ToolError(`upstreamToken: scope is longer than ${MAX_SCOPE} characters`)
      const key = `${login.id} ${wanted}`
      const known = exchanged.get(key)
      if (known && isGood(known) && known.accessToken !== rejected) return known.accessToken
      return (await exchange(caller, login, wanted, key)).accessToken
    },
  }
}
