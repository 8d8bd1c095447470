// Accounts of oidc-provider: each is the user of a login, checked with the provider on refresh.

import { type Client, errors } from 'oidc-provider'
import type { Clock, Logger } from '../../../core/plugin.ts'
import { asText, digest, grantedKey, type OperatorGrant, type Records } from '../../families/credentials/index.ts'
import { isBrowser } from '../browser/browser.ts'
import { sameRedirect } from '../clients/redirects.ts'
import { createLimit } from '../limits.ts'
import type { ProviderContext } from '../server/oidc-provider.ts'
import type { Standing } from './decide.ts'
import type { Login, Logins } from './logins.ts'

export interface Consent extends OperatorGrant {
  readonly grantId: string
  readonly login: string
  readonly redirectUri: string
  readonly document?: string
  readonly resources: readonly string[]
}

const MAX_GRANTS = 200

const consentKey = (grantId: string) => grantedKey('consent', grantId)
const listOf = (subject: string) => grantedKey('consents of', subject)
const NEWEST = grantedKey('newest consents', '')

/** Returns a digest of the metadata that consent depends on: excludes keys and images. */
export function digestOfDocument(client: Client): string | undefined {
  if (!client.clientIdMetadataDocument) return undefined
  const { client_name, client_uri, redirect_uris, grant_types, token_endpoint_auth_method } = client.metadata()
  return digest(JSON.stringify([client_name, client_uri, redirect_uris, grant_types, token_endpoint_auth_method]))
}

export function changedSince(
  consent: Consent,
  client: Client,
  redirectUri: string,
): 'redirect' | 'document' | undefined {
  if (consent.document !== digestOfDocument(client)) return 'document'
  return sameRedirect(consent.redirectUri, redirectUri) ? undefined : 'redirect'
}

export type Consents = ReturnType<typeof createConsents>

export function createConsents(records: Records, ttl: number) {
  function find(grantId: string): Promise<Consent | undefined> {
    return records.read(consentKey(grantId))
  }

  async function keep(consent: Consent): Promise<void> {
    await records.write(consentKey(consent.grantId), consent, ttl)
    await records.join(listOf(consent.subject), consent.grantId, ttl, MAX_GRANTS)
    await records.join(NEWEST, consent.grantId, ttl, MAX_GRANTS + 1)
  }

  async function moveTo(grantId: string, login: string): Promise<void> {
    await records.update<Consent>(consentKey(grantId), ttl, consent =>
      consent.login === login ? undefined : { ...consent, login },
    )
  }

  async function used(grantId: string): Promise<void> {
    await records.update<Consent>(consentKey(grantId), ttl, consent => ({ ...consent, used: Date.now() }))
  }

  async function of(subject: string): Promise<readonly Consent[]> {
    const ids = await records.members(listOf(subject))
    const found = await Promise.all(ids.map(id => find(id)))
    return found.flatMap(consent => (consent?.subject === subject ? [consent] : [])).reverse()
  }

  /** The consents of all users, newest first. `isCut`: there can be older ones. */
  async function newest(): Promise<{ readonly list: readonly Consent[]; readonly isCut: boolean }> {
    const ids = await records.members(NEWEST)
    const found = await Promise.all(ids.slice(-MAX_GRANTS).map(id => find(id)))
    return { list: found.flatMap(consent => consent ?? []).reverse(), isCut: ids.length > MAX_GRANTS }
  }

  async function forget({ grantId, subject }: Pick<Consent, 'grantId' | 'subject'>): Promise<void> {
    await records.delete(consentKey(grantId))
    await records.leave(listOf(subject), grantId)
    await records.leave(NEWEST, grantId)
  }

  return { find, keep, moveTo, used, of, newest, forget }
}

export function unavailable(why: string): Error {
  const error = new errors.CustomOIDCProviderError('temporarily_unavailable', why)
  return Object.assign(error, { status: 503, statusCode: 503 })
}

export interface Account {
  readonly accountId: string
  readonly login: Login
  readonly standing: Standing
  claims(): { readonly sub: string }
}

interface AccountSettings {
  readonly records: Records
  readonly logins: Logins
  readonly consents: Consents
  readonly log: Logger
  readonly clock: Clock
  readonly session: number
}

const accountOf = (login: Login, standing: Standing): Account => {
  const accountId = login.person.subject
  return { accountId, login, standing, claims: () => ({ sub: accountId }) }
}

const CONSENT = 'BridgeConsent'

export const consentIn = ({ oidc }: ProviderContext) => oidc.entities[CONSENT] as Consent | undefined

const sessionKey = (sessionUid: string) => grantedKey('login of session', sessionUid)

export interface Presented {
  readonly grantId?: string
  readonly consumed?: unknown
}

/** Maximum refreshes per grant and minute, because a refresh token is reusable in its grace period. */
const MAX_RENEWALS = 60

export type Accounts = ReturnType<typeof createAccounts>

export function createAccounts({ records, logins, consents, log, clock, session }: AccountSettings) {
  const mayRenew = createLimit(MAX_RENEWALS, clock)
  function find(ctx: ProviderContext, accountId: string, token?: Presented): Promise<Account | undefined> {
    return token?.grantId === undefined ? ofBrowser(ctx, accountId) : ofGrant(accountId, token)
  }

  async function loginOf(sessionUid: string, accountId: string): Promise<Login | undefined> {
    const id = await records.read<string>(sessionKey(sessionUid))
    const login = id === undefined ? undefined : await logins.find(id)
    return login?.person.subject === accountId ? login : undefined
  }

  function signedIn(sessionUid: string, loginId: string): Promise<void> {
    return records.write(sessionKey(sessionUid), loginId, session)
  }

  async function ofBrowser(ctx: ProviderContext, accountId: string) {
    const { oidc } = ctx
    const loginId = oidc.result?.['loginId']
    // Another browser can have the cookies of the interaction, which oidc-provider would accept.
    if (loginId !== undefined && !isBrowser(ctx, oidc.provider.issuer, oidc.result?.['browser'])) return undefined
    const login = typeof loginId === 'string' ? await logins.find(loginId) : await loginOf(oidc.session.uid, accountId)
    if (login?.person.subject !== accountId) return undefined
    if (loginId !== undefined) await signedIn(oidc.session.uid, login.id)
    const standing = logins.standingOf(login.person)
    return standing && accountOf(login, standing)
  }

  async function ofGrant(accountId: string, { grantId = '', consumed }: Presented) {
    const consent = await consents.find(grantId)
    if (consent?.subject !== accountId) return undefined
    // A used refresh token always reaches replay detection.
    if (consumed === undefined && !mayRenew(grantId))
      throw unavailable('this client refreshes too often; wait a minute')
    const renewed = await logins.renew(consent.login)
    if ('unsure' in renewed) throw unavailable(renewed.unsure)
    if ('ended' in renewed) {
      log.info(
        { code: 'MH2132', subject: accountId, client: consent.client.id, reason: renewed.ended },
        'refused a refresh',
      )
      return undefined
    }
    await consents.used(grantId)
    return accountOf(renewed.login, renewed.standing)
  }

  /** `loadExistingGrant` of oidc-provider: earlier consent of this browser, unless the client changed. */
  async function grantFor({ oidc }: ProviderContext) {
    const given = (oidc.result?.['consent'] as { grantId?: string } | undefined)?.grantId
    const grantId = given ?? oidc.session.grantIdFor(oidc.client.clientId)
    const account = oidc.account as Account | undefined
    if (grantId === undefined || !account) return undefined
    const consent = await consents.find(grantId)
    if (!consent || consent.subject !== account.accountId || consent.client.id !== oidc.client.clientId)
      return undefined
    if (changedSince(consent, oidc.client, asText(oidc.params['redirect_uri'])) !== undefined) return undefined
    await consents.moveTo(grantId, account.login.id)
    oidc.entity(CONSENT, consent)
    return oidc.provider.Grant.find(grantId)
  }

  return { find, loginOf, signedIn, grantFor }
}
