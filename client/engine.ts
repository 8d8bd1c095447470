// Returns a stored, refreshed or new token. At most one acquisition runs per container.
import { type Acquirer, createAcquirer, type Need } from './acquire.ts'
import type { ClientContext } from './context.ts'
import { type Authority, createAuthorityFinder } from './discovery.ts'
import { createDPoPSigner, type DPoPSigner } from './dpop.ts'
import { AuthError, callOption, InteractionRequiredError } from './errors.ts'
import { isUnattended } from './grants.ts'
import { withAbort } from './http.ts'
import { isLoopback } from './resolve-options.ts'
import { covers, createStepUps, splitScope, type WantedScopes } from './scopes.ts'
import type { CacheContext, FlowRecord, TokenContainer } from './stores.ts'
import { createStormBreaker } from './storm.ts'
import { nameProcess } from './text.ts'
import {
  createFlights,
  createTokenStore,
  isDue,
  isExpired,
  isOurs,
  type Outcome,
  secretsIn,
  type TokenStore,
} from './token-store.ts'

function createRedirectingAcquirer(ctx: ClientContext, store: TokenStore, key: string): Acquirer {
  const plain = createAcquirer(ctx, store, key)
  const { openRedirect } = ctx
  if (!openRedirect) return plain
  return {
    ...plain,
    async login(before, need, prompt, signal) {
      const { redirectUri, delegate, close } = await openRedirect(before?.registration?.redirectUri)
      try {
        const options = { ...ctx.options, redirectUri, authorizationRedirectDelegate: delegate }
        return await createAcquirer({ ...ctx, options }, store, key).login(before, need, prompt, signal)
      } finally {
        await close()
      }
    },
  }
}

/** Milliseconds before the next attempt after a failed early refresh. */
const BACK_OFF = 30_000

export interface Want extends WantedScopes {
  readonly used: TokenContainer | undefined
  readonly metadataUrls: readonly string[]
  readonly scheme: string | undefined
  /** No response caused this: a token is refreshed before it expires. */
  readonly isRefresh?: boolean
  /** A login by `session.login`, regardless of stored tokens. */
  readonly explicit?: boolean
  readonly refusedClientId?: string | undefined
  readonly ask: 'no' | 'ask' | 'defer'
  readonly admit?: () => boolean
}

export type Engine = ReturnType<typeof createEngine>

const FAILED = { code: 'login_failed', fix: 'see `cause`: a function of the options failed, or this client has a bug' }

/** Requires TLS for bearer tokens (RFC 6750 §5.3). */
function refuseClearText(serverUrl: string): void {
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
  const store = watched(createTokenStore(options.tokenCache, context))
  const finder = createAuthorityFinder(ctx)
  const acquirer = createRedirectingAcquirer(ctx, store, key)
  const flights = createFlights(options.tokenCache, key)
  const storm = createStormBreaker(key, {
    serverUrl: options.serverUrl,
    now,
    opened: until => emit('storm-breaker-open', { until }),
  })
  const spread = Math.random()
  let backOffUntil = 0
  let dpop: { readonly jwk: string; readonly signer: DPoPSigner } | undefined

  function watched(plain: TokenStore): TokenStore {
    const tell = (container: TokenContainer | undefined) => {
      secrets.add(...secretsIn(container))
      return container
    }
    return {
      ...plain,
      read: async () => tell(await plain.read()),
      write: container => plain.write(tell(container) ?? container),
    }
  }

  async function signerFor(stored: TokenContainer | undefined): Promise<DPoPSigner> {
    const jwk = stored?.dpopJwk && JSON.stringify(stored.dpopJwk)
    if (dpop && (jwk === undefined || dpop.jwk === jwk)) return dpop.signer
    const signer = await createDPoPSigner(stored?.dpopJwk, now)
    dpop = { jwk: JSON.stringify(signer.jwk), signer }
    return signer
  }

  async function signerWanted({ info }: Authority, stored: TokenContainer | undefined, scheme: string | undefined) {
    if (options.dpop === false) return undefined
    const asked = scheme === 'DPoP' || info.dpopRequired || stored?.tokenType === 'DPoP'
    return options.dpop === true || asked ? signerFor(stored) : undefined
  }

  const serves = (container: TokenContainer | undefined, { used, stepUp, challenged, explicit }: Want): boolean =>
    container?.accessToken !== undefined &&
    container.accessToken !== used?.accessToken &&
    !explicit &&
    isOurs(container, options) &&
    !isExpired(container, now()) &&
    (!stepUp || covers(splitScope(container.scope), challenged ?? []))

  async function adopt(want: Want, from: 'cache' | 'other-request', candidate: Outcome): Promise<Outcome> {
    if (!serves(candidate, want)) return undefined
    emit('token-adopted', { from })
    return candidate
  }

  const acquireLocked = (want: Want, work: (stored: Outcome) => Promise<Outcome>): Promise<Outcome> =>
    store.locked(async () => {
      const stored = await store.read()
      const adopted = await adopt(want, 'cache', stored)
      if (adopted) return adopted
      const obtained = await work(stored)
      if (obtained) storm.obtained(want.explicit === true)
      return obtained
    })

  async function login(want: Want, need: Need, signal: AbortSignal, caller: AbortSignal | undefined): Promise<Outcome> {
    const prompt = { defer: want.ask === 'defer', asking: () => storm.asked(want.explicit === true) }
    if (!want.explicit) storm.check('prompt')
    if (prompt.defer) return acquirer.login(await store.read(), need, prompt, signal)
    let lease = await store.leaseLogin()
    // After the wait, the tokens of the other process also satisfy an explicit login.
    const adoptable = lease.held ? want : { ...want, explicit: false }
    while (!lease.held) {
      const { pid } = lease
      emit('login-waiting', { pid })
      const timeout = AbortSignal.timeout(options.loginTimeoutMs)
      const isAbandoned = await lease.wait(caller ? AbortSignal.any([caller, timeout]) : timeout).catch(() => false)
      // Joined callers start a new wait.
      if (caller?.aborted) return undefined
      if (!isAbandoned) {
        const adopted = await adopt(adoptable, 'cache', await store.read())
        if (adopted) return adopted
        throw new AuthError(`the login of ${nameProcess(pid)} was not completed`, {
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
      const container = await acquirer.login(stored, need, prompt, signal)
      storm.obtained(want.explicit === true)
      return container
    } finally {
      await lease.release()
    }
  }

  async function acquire(want: Want, caller: AbortSignal | undefined): Promise<Outcome> {
    // HTTP requests continue after the caller aborts, because the next caller can use the result.
    const { signal } = new AbortController()
    storm.check(want.explicit ? 'login' : 'token')
    refuseClearText(options.serverUrl)
    const stored = await store.read()
    const find = want.isRefresh ? finder.known : finder.find
    const authority = await find(want.metadataUrls, signal)
    const { challenged, stepUp, added, refusedClientId } = want
    const dpop = await signerWanted(authority, stored, want.scheme)
    const need = { authority, challenged, stepUp, added, refusedClientId, dpop }
    if (isUnattended(options.grant)) return acquireLocked(want, latest => acquirer.request(latest, need, signal))
    if (!stepUp && !want.explicit && stored?.refreshToken !== undefined) {
      const renewed = await acquireLocked(want, async latest =>
        latest?.refreshToken === undefined ? undefined : acquirer.refresh(latest, need, signal),
      )
      if (renewed) return renewed
    }
    return want.ask === 'no' ? undefined : login(want, need, signal, caller)
  }

  async function obtain(want: Want, signal: AbortSignal | undefined): Promise<Outcome> {
    for (;;) {
      const flight = flights.current()
      if (flight) {
        const outcome = await withAbort(flight.outcome, signal).catch((error: unknown) => {
          // The caller of the flight cannot ask the user in the same way as this one.
          if (error instanceof InteractionRequiredError && flight.ask !== want.ask) return undefined
          throw error
        })
        const adopted = await adopt(want, 'other-request', outcome)
        if (adopted) return adopted
        continue
      }
      const adopted = await adopt(want, 'cache', await store.read())
      if (adopted) return adopted
      if (flights.current()) continue
      if (want.admit?.() === false) return undefined
      const start = () => callOption('getting a token failed', FAILED, () => acquire(want, signal))
      return withAbort(flights.start(start, want.ask), signal)
    }
  }

  async function renew(stored: TokenContainer, expired: boolean, signal: AbortSignal | undefined): Promise<Outcome> {
    const metadataUrls = stored.resourceMetadataUrl === undefined ? [] : [stored.resourceMetadataUrl]
    const want = { used: stored, metadataUrls, challenged: undefined, scheme: stored.tokenType, stepUp: false } as const
    try {
      const renewed = await obtain({ ...want, isRefresh: true, ask: 'no' }, signal)
      return renewed ?? (expired ? undefined : stored)
    } catch (error) {
      if (expired || signal?.aborted || !AuthError.is(error) || error.code === 'cache_failed') throw error
      backOffUntil = now() + BACK_OFF * (1 + spread)
      return stored
    }
  }

  return {
    store,
    storm,
    stepUps: createStepUps(),
    emit,
    async current(signal: AbortSignal | undefined): Promise<Outcome> {
      const stored = await store.read()
      if (!stored || !isOurs(stored, options)) return undefined
      const { accessToken, refreshToken } = stored
      const expired = accessToken === undefined || isExpired(stored, now())
      const due = expired || isDue(stored, now(), options.refreshLeewaySeconds, spread)
      const renewable = refreshToken !== undefined || (accessToken !== undefined && isUnattended(options.grant))
      if (!due || (!expired && (!renewable || now() < backOffUntil || flights.current()))) return stored
      return renewable ? renew(stored, expired, signal) : undefined
    },
    obtain,
    async redeem(record: FlowRecord, code: string): Promise<void> {
      const { signal } = new AbortController()
      const signer = options.dpop === true ? await signerFor(await store.read()) : undefined
      await acquirer.redeem(record, code, signer, signal)
    },
    authority(stored: TokenContainer, signal: AbortSignal): Promise<Authority> {
      return finder.known(stored.resourceMetadataUrl === undefined ? [] : [stored.resourceMetadataUrl], signal)
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
