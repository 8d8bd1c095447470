// The key set of an issuer: fetched on demand, renewed before expiry, and kept during outages.

import { createPublicKey } from 'node:crypto'
import type { SigningKey } from 'jwks-rsa'
import { fetchJson, shownUrl } from '../../../core/auth.ts'
import type { InternalHost } from '../../../core/internal.ts'
import { isObject, type Logger, type Route } from '../../../core/plugin.ts'
import {
  type Algorithm,
  candidates,
  type KeyLookup,
  type KeySource,
  type VerificationKey,
  weaknessOf,
} from './verification-key.ts'

/** Milliseconds between fetches for unknown keys. */
const UNKNOWN_KEY_INTERVAL = 10_000
/** Milliseconds between a failure and the next attempt. */
const RETRY_INTERVAL = 2_000
/** Fraction of the maximum age after which the set is renewed in the background. */
const RENEW_AT = 0.8

export interface IssuerKeysSettings {
  readonly issuer: string
  readonly jwksUri: string | undefined
  readonly maxAge: number
  /** Milliseconds for which the last set is used during an outage. */
  readonly maxStale: number
  readonly loose: boolean
  /** The issuer is this host, which does not listen yet: `warmUp` does nothing. */
  readonly isOwn?: boolean
  readonly log: Logger
  readonly fetched?: (outcome: 'ok' | 'failed') => void
  readonly now?: () => number
}

export type IssuerKeys = ReturnType<typeof createIssuerKeys>

/** Fetches a key set. Rejects for an invalid key set; an empty set is valid. */
async function readKeySet(jwksUri: string, signal: AbortSignal): Promise<SigningKey[]> {
  const { status, body } = await fetchJson(jwksUri, { signal })
  if (status !== 200) throw new Error(`${shownUrl(jwksUri)} answers ${status}`)
  if (!isObject(body) || !Array.isArray(body['keys'])) throw new Error(`${shownUrl(jwksUri)} is not a JSON Web Key Set`)
  const set = { keys: body['keys'].filter(isObject) }
  if (set.keys.length === 0) return []
  const { JwksClient } = await import('jwks-rsa')
  const client = new JwksClient({ jwksUri, cache: false, rateLimit: false, fetcher: async () => set })
  // `getSigningKeys` rejects for a set without signature keys.
  return client.getSigningKeys().catch(() => [])
}

function verificationKeys(listed: readonly SigningKey[], known: readonly VerificationKey[]): VerificationKey[] {
  return listed.flatMap(one => {
    const { kid, alg } = one as { kid?: string; alg?: string }
    const pem = one.getPublicKey()
    const same = known.find(key => key.kid === kid && key.alg === alg && key.pem === pem)
    return same ?? { kid, alg, pem, key: createPublicKey(pem) }
  })
}

export function createIssuerKeys(settings: IssuerKeysSettings) {
  const { issuer, maxAge, loose, log, now = Date.now } = settings
  const maxStale = Math.max(settings.maxStale, maxAge)
  const closing = new AbortController()
  let keys: readonly VerificationKey[] = []
  let jwksUri = settings.jwksUri
  let fetchedAt = Number.NEGATIVE_INFINITY
  let retryAt = Number.NEGATIVE_INFINITY
  let askAt = Number.NEGATIVE_INFINITY
  let failing = false
  let told = false
  let pending: Promise<void> | undefined

  const age = () => now() - fetchedAt
  const serves = () => age() < (failing ? maxStale : maxAge)

  async function load() {
    // The age starts with the request, so that a withdrawn key expires on time.
    const asked = now()
    jwksUri ??= await discoverKeys(issuer, closing.signal)
    keys = verificationKeys(await readKeySet(jwksUri, closing.signal), keys)
    fetchedAt = asked
    for (const key of loose ? [] : keys) {
      const weakness = weaknessOf(key)
      if (weakness !== undefined)
        log.warn({ code: 'MH2011', issuer, kid: key.kid }, `a key of the issuer is not used: it ${weakness}`)
    }
  }

  function failed(err: unknown, counts: boolean) {
    if (closing.signal.aborted) return
    settings.fetched?.('failed')
    if (!counts)
      log.warn(
        { code: 'MH2012', issuer, err },
        'the keys of the issuer cannot be fetched yet; the first token causes another attempt',
      )
    else if (!told)
      log.error({ code: 'MH2012', issuer, err, keys: keys.length }, 'the keys of the issuer cannot be fetched')
    told ||= counts
    failing = true
    jwksUri = settings.jwksUri
    if (counts) retryAt = now() + RETRY_INTERVAL
  }

  function refresh(counts = true): Promise<void> {
    pending ??= load()
      .then(() => {
        settings.fetched?.('ok')
        if (failing)
          log.info({ code: 'MH2013', issuer, keys: keys.length }, 'the keys of the issuer can be fetched again')
        failing = told = false
        retryAt = Number.NEGATIVE_INFINITY
      })
      .catch((err: unknown) => failed(err, counts))
      .finally(() => {
        pending = undefined
      })
    return pending
  }

  async function renew(): Promise<boolean> {
    if (age() < maxAge * RENEW_AT) return true
    if (now() < retryAt && !pending) return serves()
    const fetched = refresh()
    if (serves()) return true
    await fetched
    return !failing || serves()
  }

  const unavailable = () => ({
    unavailable: 'cannot fetch the keys of the authorization server',
    retryAfter: Math.max(1, Math.ceil((retryAt - now()) / 1_000)),
  })

  return {
    async find(kid: string | undefined, algorithm: Algorithm): Promise<KeyLookup> {
      if (!(await renew())) return unavailable()
      const found = candidates(keys, kid, algorithm, loose)
      if (found.length > 0 || kid === undefined || keys.some(key => key.kid === kid)) return { keys: found }
      if (now() >= askAt) {
        askAt = now() + UNKNOWN_KEY_INTERVAL
        await refresh()
      } else if (pending) await pending
      const late = candidates(keys, kid, algorithm, loose)
      return late.length === 0 && failing ? unavailable() : { keys: late }
    },
    isCurrent(key: VerificationKey): boolean {
      if (age() >= maxAge * RENEW_AT) void renew()
      return age() < maxAge && keys.includes(key)
    },
    /** Fetches the set before the first request; failures have no consequence. */
    warmUp(): void {
      if (!settings.isOwn) void refresh(false)
    },
    usable: renew,
    /** Milliseconds since the set was fetched. */
    age: () => (fetchedAt === Number.NEGATIVE_INFINITY ? undefined : age()),
    close: () => closing.abort(new Error('the host is closing')),
  } satisfies KeySource & Record<string, unknown>
}

/** Returns the metadata URLs in order of requests: RFC 8414, then OpenID Connect Discovery. */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

function readMetadata(body: unknown, issuer: string): { problem: string } | { jwksUri: string } {
  if (!isObject(body)) return { problem: 'is not a JSON object' }
  if (body['issuer'] !== issuer) {
    return { problem: `is of the issuer ${JSON.stringify(body['issuer'])}, the config says ${JSON.stringify(issuer)}` }
  }
  const jwksUri = body['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) return { problem: 'has no jwks_uri' }
  const { protocol } = new URL(jwksUri)
  const fits = protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))
  return fits ? { jwksUri } : { problem: `has a jwks_uri of ${protocol}` }
}

/** Finds the key URL. Rejects with the failures of all attempts. `issuer` must match the document exactly. */
async function discoverKeys(issuer: string, signal: AbortSignal): Promise<string> {
  const problems: string[] = []
  for (const url of metadataUrls(issuer)) {
    const { status, body } = await fetchJson(url, { signal })
    const found = status === 200 ? readMetadata(body, issuer) : { problem: `answers ${status}` }
    if ('jwksUri' in found) return found.jwksUri
    problems.push(`${url} ${found.problem}`)
  }
  throw new Error(problems.join('; '))
}

type Accepts = (route: Route, issuer: string) => boolean

const ACCEPTED = Symbol('accepted issuers')

const acceptedIn = (host: Pick<InternalHost, 'share'>) => host.share(ACCEPTED, (): Accepts[] => [])

export function announceIssuers(host: Pick<InternalHost, 'routes' | 'share'>, issuers: ReadonlyMap<string, unknown>) {
  const routes: ReadonlySet<Route> = new Set(host.routes)
  acceptedIn(host).push((route, issuer) => routes.has(route) && issuers.has(issuer))
}

/**
 * Creates a check that is true for issuers of the route's `auth-jwt`, and for the authorization server of this host.
 * Must be called in `setup`.
 */
export function createIssuerCheck(host: Pick<InternalHost, 'services' | 'share'>): Accepts {
  const accepted = acceptedIn(host)
  return (route, issuer) =>
    host.services.slot('authorizationServer', route).issuer() === issuer ||
    accepted.some(accepts => accepts(route, issuer))
}
