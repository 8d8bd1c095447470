// Exchanges identity assertions (ID-JAG) for access tokens (draft-ietf-oauth-identity-assertion-authz-grant).

import type Provider from 'oidc-provider'
import { errors, type ResourceServer } from 'oidc-provider'
import type { Claims, Logger } from '../../../core/plugin.ts'
import { grantedKey, type Records } from '../../families/credentials/index.ts'
import {
  type Algorithm,
  ASYMMETRIC,
  decodeJwt,
  findKey,
  isTime,
  loadJsonWebToken,
} from '../../families/issuer-keys/index.ts'
import type { TrustedIssuer, TrustedIssuers } from '../assertions/trusted-issuers.ts'
import { isConfidential, JWT_BEARER } from '../clients/client-rules.ts'
import type { Decide, Standing } from '../people/decide.ts'
import { addressOf, firstText, groupsAt, textOf } from '../upstream/person.ts'
import type { Settings } from '../upstream/settings.ts'
import type { Person } from '../upstream/upstream.ts'
import type { ProviderContext } from './oidc-provider.ts'
import type { Resources } from './resources.ts'

const TYPE = 'oauth-id-jag+jwt'
/** Clock tolerance, seconds. */
const TOLERANCE = 60
/** Maximum seconds from `iat` to `exp`. */
const MAX_LIFE = 600
/** Maximum characters of an assertion. */
const MAX_ASSERTION = 16_384
const MAX_NAME = 512

export interface Assertion {
  readonly from: TrustedIssuer
  readonly claims: Claims
  readonly subject: string
  readonly id: string
  /** Expiry with tolerance, milliseconds since the epoch. */
  readonly until: number
}

export type Checked =
  | { readonly assertion: Assertion }
  /** A public text that contains nothing of the assertion. */
  | { readonly refused: string }
  | { readonly unavailable: string; readonly retryAfter: number }

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_NAME

function headerProblem({ crit, typ, alg, kid }: Claims): string | undefined {
  if (crit !== undefined) return 'it has critical headers (crit), which are not supported'
  if (typ !== TYPE) return `its type (typ) is not ${TYPE}`
  if (!ASYMMETRIC.some(one => one === alg)) return `its algorithm (alg) is not one of ${ASYMMETRIC.join(', ')}`
  return kid === undefined || typeof kid === 'string' ? undefined : 'its key id (kid) is not a string'
}

function timeProblem({ exp, iat, nbf }: Claims, now: number): string | undefined {
  if (!isTime(exp)) return 'it has no expiry time (exp)'
  if (!isTime(iat)) return 'it has no issue time (iat)'
  if (exp + TOLERANCE <= now) return 'it has expired'
  if (iat > now + TOLERANCE) return 'it was issued in the future (iat): compare the clocks'
  if (nbf !== undefined && (!isTime(nbf) || nbf > now + TOLERANCE)) return 'it is not valid yet (nbf)'
  return exp - iat > MAX_LIFE ? `it is valid for more than ${MAX_LIFE / 60} minutes (exp, iat)` : undefined
}

function onlyAudience({ aud }: Claims): unknown {
  return Array.isArray(aud) ? (aud.length === 1 ? aud[0] : undefined) : aud
}

function claimsProblem(claims: Claims, from: TrustedIssuer, audience: string, clientId: string): string | undefined {
  if (onlyAudience(claims) !== audience) return `its audience (aud) is not this server, ${audience}, alone`
  if (claims['client_id'] !== clientId) return 'it was made for another client (client_id)'
  if (!isName(claims['sub'])) return 'it has no subject (sub)'
  if (!isName(claims['jti'])) return 'it has no id (jti)'
  // `sub` is unique per tenant only.
  if (claims['tenant'] !== from.tenant) return 'its tenant is not the one that is trusted'
  // Proof of possession is not supported here.
  if (claims['cnf'] !== undefined) return 'it is bound to a key (cnf), which is not supported here'
  return timeProblem(claims, Date.now() / 1_000)
}

function createAssertionCheck(trusted: TrustedIssuers, audience: string) {
  return async (text: string, clientId: string): Promise<Checked> => {
    const read = text.length > MAX_ASSERTION ? undefined : decodeJwt(text)
    if (!read || 'refused' in read) return { refused: 'it is not a signed JWT' }
    const { header, claims } = read
    const from = typeof claims['iss'] === 'string' ? trusted.get(claims['iss']) : undefined
    if (!from) return { refused: 'its issuer (iss) is not trusted here' }
    // Checks claims before keys, so that invalid assertions cause no requests.
    const problem = headerProblem(header) ?? claimsProblem(claims, from, audience, clientId)
    if (problem !== undefined) return { refused: problem }
    const algorithm = header['alg'] as Algorithm
    const found = await from.keys.find(header['kid'] as string | undefined, algorithm)
    if ('unavailable' in found)
      return { unavailable: 'the keys of its issuer cannot be fetched now', retryAfter: found.retryAfter }
    const { key } = findKey(await loadJsonWebToken(), text, algorithm, found.keys)
    if (!key) return { refused: 'its signature matches no key of its issuer' }
    const { sub, jti, exp } = claims as { sub: string; jti: string; exp: number }
    return { assertion: { from, claims, subject: sub, id: jti, until: (exp + TOLERANCE) * 1_000 } }
  }
}

function emailOf(claims: Claims, own: Settings | undefined): string | undefined {
  const address = addressOf(claims['email'])
  if (address === undefined) return undefined
  const isVerified = own ? own.trustEmail || own.kind.verifiedEmail(claims, address) : claims['email_verified'] === true
  return isVerified ? address : undefined
}

function assertedPerson({ from, claims, subject }: Assertion, provider: Settings): Person {
  const own = provider.issuer === from.issuer ? provider : undefined
  const name = textOf(claims['name'])
  const email = emailOf(claims, own)
  return {
    // An issuer URL contains no `#`, so the pair is unique.
    subject: own ? (firstText(claims, own.claims.subject) ?? subject) : `${from.issuer}#${subject}`,
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    groups: groupsAt(claims, own?.claims.groups ?? ['groups']),
    claims,
  }
}

const PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag'
const ASSERTED = 'Asserted'

interface IdJagSettings {
  readonly issuer: string
  readonly trusted: TrustedIssuers
  readonly upstream: Settings
  readonly records: Records
  readonly resources: Resources
  readonly decide: Decide
  readonly describe: (resource: string, standing: Standing) => ResourceServer
  readonly log: Logger
}

export const assertionMetadata = (trusted: TrustedIssuers) =>
  trusted.size === 0 ? {} : { authorization_grant_profiles_supported: [PROFILE] }

export const assertedIn = ({ oidc }: ProviderContext) => oidc.entities[ASSERTED] as Standing | undefined

const refuse = (why: string, error = 'invalid_grant') => new errors.CustomOIDCProviderError(error, why)

const splitWords = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ').filter(Boolean) : [])

function resourceFor({ claims }: Assertion, requested: unknown, resources: Resources): string {
  const find = (one: unknown) => (typeof one === 'string' ? resources.find(one) : undefined)
  const claim = claims['resource']
  const named = claim === undefined ? undefined : [claim].flat().map(find)
  if (named?.includes(undefined)) throw refuse('the assertion is for a resource that this server does not have')
  const single = named?.length === 1 ? named[0] : undefined
  const wanted = requested ?? (named ? single : resources.only)
  if (typeof wanted !== 'string') throw refuse('name the one resource that the token is for', 'invalid_target')
  const found = find(wanted)
  if (found === undefined) throw refuse('this server has no such resource', 'invalid_target')
  if (named && !named.includes(found)) throw refuse('the assertion is not for this resource', 'invalid_target')
  return found
}

function scopesFor({ claims }: Assertion, requested: unknown, standing: Standing, resources: Resources): string[] {
  const asserted = splitWords(claims['scope'])
  const wanted = new Set(requested === undefined ? asserted : splitWords(requested))
  return [...new Set(asserted)].filter(
    scope => wanted.has(scope) && resources.scopes.includes(scope) && standing.mayHave(scope),
  )
}

/** Marks an assertion as used. Stored as granted, because anyone could cause the eviction of pending entries. */
async function useUp({ from, id, until }: Assertion, records: Records): Promise<void> {
  const isFirst = await records.add(grantedKey('assertion', `${from.issuer} ${id}`), 1, Math.max(1, until - Date.now()))
  if (!isFirst) throw refuse('the assertion was already used (jti)')
}

function createHandler(provider: Provider, settings: IdJagSettings) {
  const { issuer, trusted, upstream, records, resources, decide, describe, log } = settings
  const check = createAssertionCheck(trusted, issuer)

  async function checkAssertion(ctx: ProviderContext): Promise<Assertion> {
    const { client, params } = ctx.oidc
    if (!isConfidential(client))
      throw refuse('only authenticated clients can present assertions', 'unauthorized_client')
    const assertion = params['assertion']
    if (typeof assertion !== 'string') throw refuse('assertion is missing', 'invalid_request')
    const checked = await check(assertion, client.clientId)
    if ('assertion' in checked) return checked.assertion
    if ('refused' in checked) {
      log.info({ code: 'MH2136', client: client.clientId, reason: checked.refused }, 'refused an identity assertion')
      throw refuse(`the assertion is refused: ${checked.refused}`)
    }
    ctx.set('Retry-After', String(checked.retryAfter))
    throw Object.assign(refuse(checked.unavailable, 'temporarily_unavailable'), { status: 503, statusCode: 503 })
  }

  return async (ctx: ProviderContext): Promise<void> => {
    const { client, params } = ctx.oidc
    const assertion = await checkAssertion(ctx)
    const person = assertedPerson(assertion, upstream)
    const decision = decide(person)
    if ('refused' in decision) {
      const { refused: reason } = decision
      log.info(
        { code: 'MH2137', client: client.clientId, subject: person.subject, reason },
        'refused the user of an identity assertion',
      )
      throw refuse(`the user cannot use this server: ${reason}`)
    }
    const { standing } = decision
    const resource = resourceFor(assertion, params['resource'], resources)
    const scope = scopesFor(assertion, params['scope'], standing, resources).join(' ') || undefined
    await useUp(assertion, records)
    ctx.oidc.entity(ASSERTED, standing)
    const about = { accountId: person.subject, client, scope, gty: JWT_BEARER }
    const token = new provider.AccessToken(about as ConstructorParameters<typeof provider.AccessToken>[0])
    token.resourceServer = new provider.ResourceServer(resource, describe(resource, standing))
    const access_token = await token.save()
    ctx.body = { access_token, token_type: token.tokenType, expires_in: token.expiration, scope }
  }
}

export function takeAssertions(provider: Provider, settings: IdJagSettings): void {
  if (settings.trusted.size === 0) return
  const handle = createHandler(provider, settings)
  provider.registerGrantType(JWT_BEARER, ctx => handle(ctx as ProviderContext), ['assertion', 'scope', 'resource'])
}
