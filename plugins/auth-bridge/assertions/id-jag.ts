// Enterprise-managed authorization: a client shows an identity assertion (ID-JAG) of a trusted issuer at the token endpoint,
// and gets an access token for the person in it. Nobody is asked, and there is no login: no refresh token, no `sid`.
import type Provider from 'oidc-provider'
import { errors, type ResourceServer } from 'oidc-provider'
import type { Claims } from '../../../core/auth.ts'
import type { Logger } from '../../../core/index.ts'
import { isConfidential } from '../clients/client-rules.ts'
import { JWT_BEARER } from '../clients/fixed-clients.ts'
import type { Decide, Standing } from '../people/decide.ts'
import { grantedAt, type Records } from '../records.ts'
import type { ProviderContext } from '../server/oidc-provider.ts'
import type { Resources } from '../server/resources.ts'
import { addressOf, firstText, groupsAt, textOf } from '../upstream/read-person.ts'
import type { Settings } from '../upstream/settings.ts'
import type { Person } from '../upstream/upstream.ts'
import { type Assertion, createAssertionCheck } from './assertion.ts'
import type { TrustedIssuers } from './trusted-issuers.ts'

function emailOf(claims: Claims, own: Settings | undefined): string | undefined {
  const address = addressOf(claims['email'])
  if (address === undefined) return undefined
  const isVerified = own ? own.trustEmail || own.kind.verifiedEmail(claims, address) : claims['email_verified'] === true
  return isVerified ? address : undefined
}

/** `provider`: the sign-in provider. Its own assertions are read like its ID tokens. */
function assertedPerson({ from, claims, subject }: Assertion, provider: Settings): Person {
  const own = provider.issuer === from.issuer ? provider : undefined
  const name = textOf(claims['name'])
  const email = emailOf(claims, own)
  return {
    // An issuer URL has no `#`, so each pair gives a different text.
    subject: own ? (firstText(claims, own.claims.subject) ?? subject) : `${from.issuer}#${subject}`,
    ...(name !== undefined && { name }),
    ...(email !== undefined && { email }),
    groups: groupsAt(claims, own?.claims.groups ?? ['groups']),
    claims,
  }
}

const PROFILE = 'urn:ietf:params:oauth:grant-profile:id-jag'
/** How oidc-provider hands on what is known of the person. */
const ASSERTED = 'Asserted'

export interface IdJagSettings {
  readonly issuer: string
  readonly trusted: TrustedIssuers
  /** Of the provider that people sign in with. */
  readonly upstream: Settings
  readonly records: Records
  readonly resources: Resources
  readonly decide: Decide
  /** What oidc-provider is told of a resource, for somebody who may have this. */
  readonly describe: (resource: string, standing: Standing) => ResourceServer
  readonly log: Logger
}

/** What the metadata says where assertions are taken (section 7.2 of the draft). */
export const assertionMetadata = (trusted: TrustedIssuers) =>
  trusted.size === 0 ? {} : { authorization_grant_profiles_supported: [PROFILE] }

/** Of whom a token is that an assertion is exchanged for; undefined for all other tokens. */
export const assertedIn = ({ oidc }: ProviderContext) => oidc.entities[ASSERTED] as Standing | undefined

const refuse = (why: string, error = 'invalid_grant') => new errors.CustomOIDCProviderError(error, why)

const wordsOf = (value: unknown): string[] => (typeof value === 'string' ? value.split(' ').filter(Boolean) : [])

/** The one resource of the token: what the assertion is for, and the client asks for, where they say. */
function resourceFor({ claims }: Assertion, asked: unknown, resources: Resources): string {
  const find = (one: unknown) => (typeof one === 'string' ? resources.find(one) : undefined)
  const claim = claims['resource']
  const named = claim === undefined ? undefined : [claim].flat().map(find)
  if (named?.includes(undefined)) throw refuse('the assertion is for a resource that this server does not have')
  const alone = named?.length === 1 ? named[0] : undefined
  const wanted = asked ?? (named ? alone : resources.only)
  if (typeof wanted !== 'string') throw refuse('name the one resource that the token is for', 'invalid_target')
  const found = find(wanted)
  if (found === undefined) throw refuse('this server has no such resource', 'invalid_target')
  if (named && !named.includes(found)) throw refuse('the assertion is not for this resource', 'invalid_target')
  return found
}

function scopesFor({ claims }: Assertion, asked: unknown, standing: Standing, resources: Resources): string[] {
  const asserted = wordsOf(claims['scope'])
  const wanted = new Set(asked === undefined ? asserted : wordsOf(asked))
  return [...new Set(asserted)].filter(
    scope => wanted.has(scope) && resources.scopes.includes(scope) && standing.mayHave(scope),
  )
}

/**
 * Once for each. Kept among what people were given, not among what anybody may begin: whoever could fill that up could make
 * room for a second use. It costs a place only where a trusted issuer signed it and everything else is in order.
 */
async function useUp({ from, id, until }: Assertion, records: Records): Promise<void> {
  const isFirst = await records.add(grantedAt('assertion', `${from.issuer} ${id}`), 1, Math.max(1, until - Date.now()))
  if (!isFirst) throw refuse('the assertion was used already (jti)')
}

function createHandler(provider: Provider, settings: IdJagSettings) {
  const { issuer, trusted, upstream, records, resources, decide, describe, log } = settings
  const check = createAssertionCheck(trusted, issuer)

  async function checkAssertion(ctx: ProviderContext): Promise<Assertion> {
    const { client, params } = ctx.oidc
    // A public client could show an assertion that was stolen from another client.
    if (!isConfidential(client))
      throw refuse('only clients that authenticate may show assertions', 'unauthorized_client')
    const given = params['assertion']
    if (typeof given !== 'string') throw refuse('assertion is missing', 'invalid_request')
    const checked = await check(given, client.clientId)
    if ('assertion' in checked) return checked.assertion
    if ('refused' in checked) {
      log.info({ client: client.clientId, reason: checked.refused }, 'refused an identity assertion')
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
      log.info({ client: client.clientId, subject: person.subject, reason }, 'refused the person of an assertion')
      throw refuse(`the person may not use this server: ${reason}`)
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

/** Only where the config trusts somebody: without, the server does not know this grant. */
export function takeAssertions(provider: Provider, settings: IdJagSettings): void {
  if (settings.trusted.size === 0) return
  const handle = createHandler(provider, settings)
  provider.registerGrantType(JWT_BEARER, ctx => handle(ctx as ProviderContext), ['assertion', 'scope', 'resource'])
}
