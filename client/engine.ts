// Returns a stored, refreshed or new token. At most one acquisition runs per container.
import { type Acquirer, createAcquirer, type TokenSpec } from './acquire.ts'
import { createBreaker } from './circuit-breaker.ts'
import type { ClientContext } from './context.ts'
import { type Authority, createAuthorityFinder } from './discovery.ts'
import { createDPoPSigner, type DPoPSigner } from './dpop.ts'
import { AuthError, callOption, InteractionRequiredError } from './errors.ts'
import { isUnattended } from './grants.ts'
import { withAbort } from './http.ts'
import { isLoopback } from './resolve-options.ts'
import { covers, createStepUps, splitScope, type WantedScopes } from './scopes.ts'
import type { CacheContext, FlowRecord, TokenContainer } from './stores.ts'
import { processText } from './text.ts'
import {
  createFlights,
  createTokenStore,
  isDue,
  isExpired,
  isOwn,
  type Outcome,
  secretsIn,
  type TokenStore,
} from './token-store.ts'

function createRedirectingAcquirer(ctx: ClientContext, store: TokenStore, key: string): Acquirer {
  const base = createAcquirer(ctx, store, key)
  const { openRedirect } = ctx
  if (!openRedirect) return base
  return {
    ...base,
    async login(before, spec, prompt, signal) {
      const { redirectUri, delegate, close } = await openRedirect(before?.registration?.redirectUri)
      try {
        const options = { ...ctx.options, redirectUri, authorizationRedirectDelegate: delegate }
        return await createAcquirer({ ...ctx, options }, store, key).login(before, spec, prompt, signal)
      } finally {
        await close()
      }
    },
  }
}

/** Milliseconds before the next attempt after a failed early refresh. */
const BACK_OFF = 30_000

export interface TokenQuery extends WantedScopes {
  readonly used: TokenContainer | undefined
  readonly metadataUrls: readonly string[]
  readonly scheme: string | undefined
  /** No response caused this: a token is refreshed before it expires. */
  readonly isRefresh?: boolean
  /** A login by `session.login`, regardless of stored tokens. */
  readonly explicit?: boolean
  readonly refusedClientId?: string | undefined
  readonly prompt: 'no' | 'ask' | 'defer'
  readonly admit?: () => boolean
}

type Caller = { readonly signal: AbortSignal | undefined; readonly since: number }

export type Engine = ReturnType<typeof createEngine>

const FAILED = { code: 'login_failed', fix: 'see `cause`: a function of the options failed, or this client has a bug' }

/** Requires TLS for bearer tokens (RFC 6750 §5.3). */
function requireTls(serverUrl: string): void {
  const { protocol, hostname } = new URL(serverUrl)
  if (protocol === 'https:' || isLoopback(hostname)) return
  throw new AuthError(`${hostname} requires a token over plain http`, {
    code: 'insecure_endpoint',
    fix: 'use its https URL; plain http is allowed only for servers on this machine',
  })
}

export function createEngine(ctx: ClientContext, context: CacheContext) {
  const { options, emit, now, secrets } = ctx
  const { key } = context
  const store = trackSecrets(createTokenStore(options.tokenCache, context))
  const finder = createAuthorityFinder(ctx)
  const acquirer = createRedirectingAcquirer(ctx, store, key)
  const flights = createFlights(options.tokenCache, key)
  const breaker = createBreaker(key, {
    serverUrl: options.serverUrl,
    now,
    onOpen: until => emit('storm-breaker-open', { until }),
  })
  const jitter = Math.random()
  let backOffUntil = 0
  let dpop: { readonly jwk: string; readonly signer: DPoPSigner } | undefined

  function trackSecrets(base: TokenStore): TokenStore {
    const track = (container: TokenContainer | undefined) => {
      secrets.add(...secretsIn(container))
      return container
    }
    return {
      ...base,
      read: async () => track(await base.read()),
      write: container => base.write(track(container) ?? container),
    }
  }

  async function signerFor(stored: TokenContainer | undefined): Promise<DPoPSigner> {
    const jwk = stored?.dpopJwk && JSON.stringify(stored.dpopJwk)
    if (dpop && (jwk === undefined || dpop.jwk === jwk)) return dpop.signer
    const signer = await createDPoPSigner(stored?.dpopJwk, now)
    dpop = { jwk: JSON.stringify(signer.jwk), signer }
    return signer
  }

  async function selectSigner({ info }: Authority, stored: TokenContainer | undefined, scheme: string | undefined) {
    if (options.dpop === false) return undefined
    const required = scheme === 'DPoP' || info.dpopRequired || stored?.tokenType === 'DPoP'
    return options.dpop === true || required ? signerFor(stored) : undefined
  }

  const meets = (container: TokenContainer | undefined, { used, stepUp, challenged, explicit }: TokenQuery): boolean =>
    container?.accessToken !== undefined &&
    container.accessToken !== used?.accessToken &&
    !explicit &&
    isOwn(container, options) &&
    !isExpired(container, now()) &&
    (!stepUp || covers(splitScope(container.scope), challenged ?? []))

  async function adopt(query: TokenQuery, from: 'cache' | 'other-request', candidate: Outcome): Promise<Outcome> {
    if (!meets(candidate, query)) return undefined
    emit('token-adopted', { from })
    return candidate
  }

  const acquireLocked = (query: TokenQuery, work: (stored: Outcome) => Promise<Outcome>): Promise<Outcome> =>
    store.locked(async () => {
      const stored = await store.read()
      const adopted = await adopt(query, 'cache', stored)
      if (adopted) return adopted
      const obtained = await work(stored)
      if (obtained) breaker.recordToken(query.explicit === true)
      return obtained
    })

  async function login(query: TokenQuery, spec: TokenSpec, signal: AbortSignal, caller: Caller) {
    const prompt = { defer: query.prompt === 'defer', onPrompt: () => breaker.recordPrompt(query.explicit === true) }
    if (!query.explicit) breaker.check('prompt')
    if (prompt.defer) return acquirer.login(await store.read(), spec, prompt, signal)
    let lease = await store.leaseLogin()
    // After the wait, the tokens of the other process also satisfy an explicit login.
    const adoptable = lease.held ? query : { ...query, explicit: false }
    while (!lease.held) {
      const { pid } = lease
      emit('login-waiting', { pid })
      const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(caller.since + options.loginTimeoutMs - now())))
      const both = caller.signal ? AbortSignal.any([caller.signal, timeout]) : timeout
      const isAbandoned = await lease.wait(both).catch(() => false)
      // Joined callers start a new wait, with the rest of their own time.
      if (caller.signal?.aborted) return undefined
      if (!isAbandoned) {
        const adopted = await adopt(adoptable, 'cache', await store.read())
        if (adopted) return adopted
        throw new AuthError(`the login of ${processText(pid)} was not completed`, {
          code: 'interaction_in_progress',
          retryable: true,
          fix: 'finish that login or end that process, then try again',
        })
      }
      lease = await store.leaseLogin()
    }
    try {
      const stored = await store.read()
      const adopted = await adopt(adoptable, 'cache', stored)
      if (adopted) return adopted
      const container = await acquirer.login(stored, spec, prompt, signal)
      breaker.recordToken(query.explicit === true)
      return container
    } finally {
      await lease.release()
    }
  }

  async function acquire(query: TokenQuery, caller: Caller): Promise<Outcome> {
    // HTTP requests continue after the caller aborts, because the next caller can use the result.
    const { signal } = new AbortController()
    breaker.check(query.explicit ? 'login' : 'token')
    requireTls(options.serverUrl)
    const stored = await store.read()
    const find = query.isRefresh ? finder.findCached : finder.find
    const authority = await find(query.metadataUrls, signal)
    const { challenged, stepUp, added, refusedClientId } = query
    const dpop = await selectSigner(authority, stored, query.scheme)
    const spec = { authority, challenged, stepUp, added, refusedClientId, dpop }
    if (isUnattended(options.grant)) return acquireLocked(query, latest => acquirer.request(latest, spec, signal))
    if (!stepUp && !query.explicit && stored?.refreshToken !== undefined) {
      const renewed = await acquireLocked(query, async latest =>
        latest?.refreshToken === undefined ? undefined : acquirer.refresh(latest, spec, signal),
      )
      if (renewed) return renewed
    }
    return query.prompt === 'no' ? undefined : login(query, spec, signal, caller)
  }

  async function obtain(query: TokenQuery, signal: AbortSignal | undefined): Promise<Outcome> {
    const caller = { signal, since: now() }
    for (;;) {
      const flight = flights.current()
      if (flight) {
        const outcome = await withAbort(flight.outcome, signal).catch((error: unknown) => {
          // The caller of the flight cannot ask the user in the same way as this one.
          if (error instanceof InteractionRequiredError && flight.prompt !== query.prompt) return undefined
          throw error
        })
        const adopted = await adopt(query, 'other-request', outcome)
        if (adopted) return adopted
        continue
      }
      const adopted = await adopt(query, 'cache', await store.read())
      if (adopted) return adopted
      if (flights.current()) continue
      if (query.admit?.() === false) return undefined
      const start = () => callOption('getting a token failed', FAILED, () => acquire(query, caller))
      return withAbort(flights.start(start, query.prompt), signal)
    }
  }

  async function renew(stored: TokenContainer, expired: boolean, signal: AbortSignal | undefined): Promise<Outcome> {
    const metadataUrls = stored.resourceMetadataUrl === undefined ? [] : [stored.resourceMetadataUrl]
    const base = { used: stored, metadataUrls, challenged: undefined, scheme: stored.tokenType, stepUp: false } as const
    try {
      const renewed = await obtain({ ...base, isRefresh: true, prompt: 'no' }, signal)
      return renewed ?? (expired ? undefined : stored)
    } catch (error) {
      if (expired || signal?.aborted || !AuthError.is(error) || error.code === 'cache_failed') throw error
      backOffUntil = now() + BACK_OFF * (1 + jitter)
      return stored
    }
  }

  return {
    store,
    breaker,
    stepUps: createStepUps(),
    emit,
    async current(signal: AbortSignal | undefined): Promise<Outcome> {
      const stored = await store.read()
      if (!stored || !isOwn(stored, options)) return undefined
      const { accessToken, refreshToken } = stored
      const expired = accessToken === undefined || isExpired(stored, now())
      const due = expired || isDue(stored, now(), options.refreshLeewaySeconds, jitter)
      const renewable = refreshToken !== undefined || (accessToken !== undefined && isUnattended(options.grant))
      if (!due || (!expired && (!renewable || now() < backOffUntil || flights.current()))) return stored
      return renewable ? renew(stored, expired, signal) : undefined
    },
    obtain,
    async redeem(record: FlowRecord, code: string): Promise<void> {
      const { signal } = new AbortController()
      const isWanted = options.dpop === true || (options.dpop !== false && record.dpop)
      const signer = isWanted ? await signerFor(await store.read()) : undefined
      await acquirer.redeem(record, code, signer, signal)
    },
    authority(stored: TokenContainer, signal: AbortSignal): Promise<Authority> {
      return finder.findCached(stored.resourceMetadataUrl === undefined ? [] : [stored.resourceMetadataUrl], signal)
    },
    async headersFor(container: TokenContainer, method: string, url: URL): Promise<Readonly<Record<string, string>>> {
      const { accessToken = '', tokenType } = container
      if (tokenType?.toLowerCase() !== 'dpop') return { authorization: `Bearer ${accessToken}` }
      const signer = await signerFor(container)
      return { authorization: `DPoP ${accessToken}`, dpop: await signer.proof(method, url.href, accessToken) }
    },
    rememberNonce: (origin: string, nonce: string) => dpop?.signer.rememberNonce(origin, nonce),
  }
}
