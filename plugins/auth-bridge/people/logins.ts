// Logins: users with their provider tokens. Consents and sessions depend on a login.
import { randomBytes } from 'node:crypto'
import type { Clock, Logger } from '../../../core/plugin.ts'
import { grantedKey, type Records } from '../../families/credentials/index.ts'
import {
  isUpstreamError,
  type Person,
  type ProviderTokens,
  type SignedIn,
  type Upstream,
  UpstreamError,
} from '../upstream/upstream.ts'
import type { Decide, Standing } from './decide.ts'

export interface Login extends SignedIn {
  readonly id: string
  readonly since: number
  readonly asked: number
  /** Start of an unfinished refresh, which possibly replaced the refresh token. */
  readonly renewing?: number
}

interface LoginSettings {
  readonly records: Records
  readonly upstream: Upstream
  readonly decide: Decide
  readonly log: Logger
  readonly clock: Clock
  readonly idle: number
  readonly most: number
  readonly renewed: (outcome: 'renewed' | 'ended' | 'unasked') => void
}

export type Renewed =
  | { readonly login: Login; readonly standing: Standing }
  | { readonly ended: string }
  | { readonly unsure: string }

/** The roles in tokens of the user. Test users of a development server have their own. */
export function rolesIn({ login, standing }: Extract<Renewed, { readonly login: Login }>): readonly string[] {
  const own = login.person.tokenClaims?.['roles']
  return Array.isArray(own) ? own.filter(role => typeof role === 'string') : standing.roles
}

/** Milliseconds within which refreshes share one provider request. */
const JUST_ASKED = 1_000
/** How long the last result is valid while the provider is unavailable, milliseconds. */
const MAX_UNASKED = 3_600_000
/** Lock lifetime, milliseconds: enough for three consecutive provider requests. */
const LOCK_TTL = 20_000
/** Pause after a provider failure, milliseconds. */
const LEFT_ALONE = 10_000

const ENDED = { ended: 'the login has ended' } as const
const NOT_TOLD = 'could not report a sign-out to the provider'

const loginKey = (id: string) => grantedKey('login', id)
const loginsOf = (browser: string) => grantedKey('logins of browser', browser)
const MAX_PER_BROWSER = 50

export type Logins = ReturnType<typeof createLogins>

export function createLogins({ records, upstream, decide, log, clock, idle, most, renewed: count }: LoginSettings) {
  const renewing = new Map<string, Promise<Renewed>>()
  let awayUntil = 0
  async function create(signedIn: SignedIn, browser: string): Promise<Login> {
    const now = clock.now()
    const login: Login = { ...signedIn, id: randomBytes(16).toString('base64url'), since: now, asked: now }
    await write(login)
    await records.join(loginsOf(browser), login.id, most, MAX_PER_BROWSER)
    return login
  }

  async function endAll({ id, person: { subject } }: Login, browser: string | undefined): Promise<void> {
    const known = browser === undefined ? [] : await records.members(loginsOf(browser))
    for (const other of new Set([...known, id])) {
      const login = await find(other)
      if (login && login.person.subject !== subject) continue
      await end(other)
      if (browser !== undefined) await records.leave(loginsOf(browser), other)
    }
  }

  async function find(id: string): Promise<Login | undefined> {
    const login = await records.read<Login>(loginKey(id))
    return login && left(login) > 0 ? login : undefined
  }

  function standingOf(person: Person): Standing | undefined {
    const decision = decide(person)
    return 'standing' in decision ? decision.standing : undefined
  }

  function renew(id: string, wanted = JUST_ASKED): Promise<Renewed> {
    const running = renewing.get(id)
    if (running) return running
    const renewal = renewLocked(id, wanted).finally(() => renewing.delete(id))
    renewing.set(id, renewal)
    return renewal
  }

  async function end(id: string): Promise<void> {
    const login = await records.take<Login>(loginKey(id))
    if (!login) return
    upstream.revoke(login.tokens).catch((err: unknown) => log.warn({ code: 'MH2133', err }, NOT_TOLD))
  }

  async function exchange(id: string, scope: string): Promise<ProviderTokens | undefined> {
    const exchanged = await withLock(id, async login => {
      const tokens = await upstream.exchange(login.tokens, scope)
      const { refreshToken } = tokens
      if (refreshToken === undefined || refreshToken === login.tokens.refreshToken) return tokens
      return (await rewrite({ ...login, tokens: { ...login.tokens, refreshToken } })) ? tokens : undefined
    })
    if (exchanged === 'busy')
      throw new UpstreamError('unavailable', 'the request of another node to the provider took too long')
    return exchanged
  }

  function left({ since }: Login) {
    return since + most - clock.now()
  }

  function ttl(login: Login) {
    return Math.max(1, Math.min(idle, left(login)))
  }

  async function write(login: Login) {
    await records.write(loginKey(login.id), login, ttl(login))
  }

  async function rewrite(login: Login): Promise<boolean> {
    const kept = await records.update<Login>(loginKey(login.id), ttl(login), () => login)
    return kept !== undefined
  }

  function judge(login: Login): Renewed {
    const decision = decide(login.person)
    return 'standing' in decision ? { login, standing: decision.standing } : { ended: decision.refused }
  }

  async function renewLocked(id: string, wanted: number): Promise<Renewed> {
    const isFresh = ({ asked }: Login) => clock.now() - asked < wanted
    const kept = await find(id)
    if (kept && isFresh(kept)) return judge(kept)
    const renewed = await withLock(id, async login => (isFresh(login) ? judge(login) : refresh(login)))
    if (renewed === 'busy') return { unsure: 'the request of another node to the provider took too long' }
    return renewed ?? ENDED
  }

  /** Runs on one node at a time: concurrent refreshes look like token theft. Undefined if the login has ended. */
  async function withLock<Value>(
    id: string,
    run: (login: Login) => Promise<Value>,
  ): Promise<Value | 'busy' | undefined> {
    // The lock is stored as granted, because pending entries can be evicted.
    const done = await records.withLock(grantedKey('asking', id), LOCK_TTL, async () => {
      const login = await find(id)
      return login && (await run(login))
    })
    return done ? done.value : 'busy'
  }

  async function refresh(login: Login): Promise<Renewed> {
    if (clock.now() < awayUntil) return unasked(login)
    if (login.tokens.refreshToken !== undefined && !(await rewrite({ ...login, renewing: clock.now() }))) return ENDED
    try {
      const { renewing: _, ...rest } = login
      const renewed: Login = { ...rest, ...(await upstream.renew(login)), asked: clock.now() }
      awayUntil = 0
      if (await rewrite(renewed)) return await settle(renewed)
      await upstream.revoke(renewed.tokens).catch((err: unknown) => log.warn({ code: 'MH2133', err }, NOT_TOLD))
      return ENDED
    } catch (error) {
      if (!isUpstreamError(error)) throw error
      if (error.fault === 'refused' && login.renewing !== undefined) return afterCrash(login)
      if (error.fault === 'refused') return refused(login, error)
      if (error.fault === 'unavailable') awayUntil = clock.now() + LEFT_ALONE
      // An untrusted response does not disqualify the user: the cause can be a wrong clock or key.
      const level = error.fault === 'unavailable' ? 'warn' : 'error'
      log[level](
        { code: 'MH2149', err: error, fix: error.fix },
        'cannot check at the provider whether users can still sign in',
      )
      return unasked(login)
    }
  }

  /** Uses the last result and keeps the mark of the unfinished refresh. */
  function unasked(login: Login): Renewed {
    count('unasked')
    if (clock.now() - login.asked < MAX_UNASKED) return judge(login)
    return { unsure: 'the identity provider is not available' }
  }

  async function settle(login: Login): Promise<Renewed> {
    const judged = judge(login)
    count('ended' in judged ? 'ended' : 'renewed')
    if ('ended' in judged) await end(login.id)
    return judged
  }

  async function refused(login: Login, error: UpstreamError): Promise<Renewed> {
    log.info({ code: 'MH2134', subject: login.person.subject, reason: error.message }, 'the provider ended a login')
    count('ended')
    await end(login.id)
    return { ended: 'the identity provider no longer accepts this user' }
  }

  /** After a crash, the new refresh token is lost. The login continues until the access token expires. */
  async function afterCrash(login: Login): Promise<Renewed> {
    const { refreshToken: _, ...tokens } = login.tokens
    const { renewing: __, ...rest } = login
    log.warn(
      { code: 'MH2135', subject: login.person.subject },
      'a node stopped while it renewed a login: the refresh token is lost',
    )
    return refresh({ ...rest, tokens })
  }

  return { create, endAll, find, standingOf, renew, end, exchange }
}
