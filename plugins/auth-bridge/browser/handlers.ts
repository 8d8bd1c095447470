// Handlers of the pages: consent, which creates a grant of oidc-provider, and the account page, where users revoke access.

import { type Client, errors, type Interaction } from 'oidc-provider'
import type { HostContext } from '../../../core/plugin.ts'
import { asText, formToken, isFormToken } from '../../families/credentials/index.ts'
import { sendPage } from '../../families/pages/index.ts'
import { isRemembered } from '../clients/client-rules.ts'
import type { Bridge } from '../make.ts'
import { changedSince, digestOfDocument } from '../people/accounts.ts'
import type { Login } from '../people/logins.ts'
import { asTexts, browserOf, fieldsOf, pathOf } from './browser.ts'
import { chooseUser, comeBack, currentLogin, openSession, sayExpired, signInFor, signInForAccount } from './sign-in.ts'

interface ConsentRequest {
  readonly interaction: Interaction
  readonly client: Client
  readonly login: Login
  readonly redirectUri: string
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
  readonly withheld: readonly string[]
}

const PLAIN = new Set(['openid', 'offline_access'])

const scopesOf = ({ params }: Interaction) => [...new Set(asText(params['scope']).split(' ').filter(Boolean))]

/** Binds the form to the displayed client metadata. */
const consentForm = ({ interaction, client }: ConsentRequest) =>
  `consent ${interaction.uid} ${client.clientId} ${digestOfDocument(client) ?? ''}`

const union = (one: readonly string[] = [], other: readonly string[]) => [...new Set([...one, ...other])]

const documentHostOf = (
  client: Pick<Client, 'clientId'> & { readonly clientIdMetadataDocument?: unknown },
): string | undefined => (client.clientIdMetadataDocument ? new URL(client.clientId).host : undefined)

async function readConsentRequest(bridge: Bridge, interaction: Interaction): Promise<ConsentRequest | undefined> {
  const { provider, accounts, logins } = bridge
  const { params, session } = interaction
  // The client's metadata document can be unavailable.
  const client = await provider.Client.find(asText(params['client_id'])).catch((err: unknown) => {
    bridge.log.info({ code: 'MH2120', err }, 'cannot read the client of a consent page')
    return undefined
  })
  const login = session?.uid === undefined ? undefined : await accounts.loginOf(session.uid, session.accountId)
  const standing = login && logins.standingOf(login.person)
  if (!client || !login || !standing) return undefined
  const requested = scopesOf(interaction).filter(scope => !PLAIN.has(scope))
  return {
    interaction,
    client,
    login,
    redirectUri: asText(params['redirect_uri']),
    resources: asTexts(params['resource']),
    scopes: requested.filter(scope => standing.mayHave(scope)),
    withheld: requested.filter(scope => !standing.mayHave(scope)),
  }
}

async function changedFor(ctx: HostContext, bridge: Bridge, { client, redirectUri }: ConsentRequest) {
  const session = await openSession(bridge.provider, ctx)
  const grantId = session.grantIdFor(client.clientId)
  const consent = grantId === undefined ? undefined : await bridge.consents.find(grantId)
  return consent && changedSince(consent, client, redirectUri)
}

async function showConsent(ctx: HostContext, bridge: Bridge, interaction: Interaction): Promise<void> {
  const requested = await readConsentRequest(bridge, interaction)
  if (!requested) return sayExpired(ctx, bridge)
  const { client, login, redirectUri, resources, scopes, withheld } = requested
  const changed = await changedFor(ctx, bridge, requested)
  const question = {
    client: {
      id: client.clientId,
      name: client.clientName,
      documentHost: documentHostOf(client),
      isKnown: bridge.known.has(client.clientId),
      ...(client.clientUri !== undefined && { homepage: client.clientUri }),
    },
    redirect: { uri: redirectUri },
    person: login.person,
    resources,
    scopes,
    remembered: isRemembered(client),
    withheld,
    token: formToken(bridge.formKeys, consentForm(requested)),
    ...(changed && { changed }),
  }
  sendPage(ctx, bridge.pages.consent(question))
}

async function findBefore({ provider, consents }: Bridge, { interaction, client, login }: ConsentRequest) {
  const { grantId } = interaction
  const before = grantId === undefined ? undefined : await consents.find(grantId)
  if (grantId === undefined || before?.subject !== login.person.subject || before.client.id !== client.clientId)
    return undefined
  const grant = await provider.Grant.find(grantId)
  return grant && { grant, before }
}

async function allow(bridge: Bridge, requested: ConsentRequest): Promise<string> {
  const { interaction, client, login, redirectUri, resources, scopes, withheld } = requested
  const found = await findBefore(bridge, requested)
  const before = found?.before
  const grant =
    found?.grant ?? new bridge.provider.Grant({ accountId: login.person.subject, clientId: client.clientId })
  // Currently denied scopes can be granted later.
  grant.rejected = undefined
  grant.addOIDCScope([...scopesOf(interaction).filter(scope => PLAIN.has(scope)), ...scopes].join(' '))
  if (withheld.length > 0) grant.rejectOIDCScope(withheld.join(' '))
  for (const resource of resources) {
    if (scopes.length > 0) grant.addResourceScope(resource, scopes.join(' '))
    if (withheld.length > 0) grant.rejectResourceScope(resource, withheld.join(' '))
  }
  const grantId = await grant.save()
  const document = digestOfDocument(client)
  const host = documentHostOf(client)
  await bridge.consents.keep({
    grantId,
    subject: login.person.subject,
    login: login.id,
    client: {
      id: client.clientId,
      ...(client.clientName !== undefined && { name: client.clientName }),
      ...(host !== undefined && { documentHost: host }),
    },
    redirectUri,
    ...(document !== undefined && { document }),
    resources: union(before?.resources, resources),
    scopes: union(before?.scopes, scopes),
    since: Date.now(),
  })
  return grantId
}

async function answerConsent(ctx: HostContext, bridge: Bridge, interaction: Interaction): Promise<void> {
  const { decision, csrf } = fieldsOf(ctx)
  if (interaction.prompt.name !== 'consent' || (decision !== 'allow' && decision !== 'deny'))
    return sayForeign(ctx, bridge)
  const requested = await readConsentRequest(bridge, interaction)
  if (!requested) return sayExpired(ctx, bridge)
  if (!isFormToken(bridge.formKeys, consentForm(requested), csrf)) return sayForeign(ctx, bridge)
  const { client, login } = requested
  const fact = { subject: login.person.subject, client: client.clientId, decision }
  bridge.log.info({ code: 'MH2121', ...fact }, 'a user answered a consent request')
  const result =
    decision === 'deny'
      ? { error: 'access_denied', error_description: 'the user denied access' }
      : { consent: { grantId: await allow(bridge, requested) } }
  sendPage(ctx, bridge.pages.leave(await bridge.provider.interactionResult(ctx.req, ctx.res, result)))
}

function sayForeign(ctx: HostContext, { pages }: Bridge): void {
  const text = 'The form was not sent from this page, or the page is out of date. Return to the client and start again.'
  sendPage(ctx, pages.message({ title: 'Form not accepted', text, isError: true }), 403)
}

const formOf = (sessionId: string) => `account ${sessionId}`

function sayWhoFirst(ctx: HostContext, { pages, upstream, ...bridge }: Bridge): void {
  const text = 'Sign in to see the clients with access to your account, and to remove their access.'
  const action = pathOf(bridge, '/account/sign-in')
  sendPage(ctx, pages.signIn({ text, label: upstream.label, action }))
}

async function show(ctx: HostContext, bridge: Bridge, login: Login, sessionId: string, notice?: string): Promise<void> {
  const { pages, upstream } = bridge
  const grants = (await bridge.ongoing(await bridge.consents.of(login.person.subject))).map(
    ({ client, ...consent }) => ({
      ...consent,
      client: { name: undefined, documentHost: undefined, ...client, isKnown: bridge.known.has(client.id) },
    }),
  )
  const token = formToken(bridge.formKeys, formOf(sessionId))
  const view = { person: login.person, signedInWith: upstream.label, grants, token }
  sendPage(ctx, pages.account({ ...view, ...(notice !== undefined && { notice }) }))
}

async function showAccount(ctx: HostContext, bridge: Bridge): Promise<void> {
  const current = await currentLogin(ctx, bridge)
  if (!current) return sayWhoFirst(ctx, bridge)
  await show(ctx, bridge, current.login, current.session.jti)
}

async function changeAccount(ctx: HostContext, bridge: Bridge): Promise<void> {
  const current = await currentLogin(ctx, bridge)
  if (!current) return sayWhoFirst(ctx, bridge)
  const { login, session } = current
  const fields = fieldsOf(ctx)
  if (!isFormToken(bridge.formKeys, formOf(session.jti), fields['csrf'])) {
    const text = 'The form was not sent from this page, or the page is out of date. Open the page again.'
    const action = { label: 'Open the page', href: pathOf(bridge, '/account') }
    return sendPage(ctx, bridge.pages.message({ title: 'Form not accepted', text, action, isError: true }), 403)
  }
  const { subject } = login.person
  if (fields['signOut'] === 'yes') {
    await session.destroy()
    await bridge.logins.endAll(login, browserOf(ctx, bridge.issuer))
    bridge.log.info({ code: 'MH2122', subject }, 'a user signed out')
    const text = 'Clients that you allowed in this browser must ask you again.'
    return sendPage(ctx, bridge.pages.message({ title: 'You are signed out', text, isError: false }))
  }
  const consent = (await bridge.consents.of(subject)).find(({ grantId }) => grantId === fields['revoke'])
  if (consent) {
    const grant = await bridge.provider.Grant.find(consent.grantId)
    await grant?.destroy()
    await bridge.consents.forget(consent)
    bridge.log.info({ code: 'MH2123', subject, client: consent.client.id }, 'a user revoked the access of a client')
  }
  const name = consent?.client.name ?? consent?.client.id
  const minutes = Math.ceil(bridge.lifetimes.accessToken / 60_000)
  const notice = consent
    ? `You removed the access of “${name}”. Access ends within ${minutes} min.`
    : 'This access was already removed.'
  await show(ctx, bridge, login, session.jti, notice)
}

type Handler = (ctx: HostContext, bridge: Bridge) => Promise<void>

async function findInteraction(ctx: HostContext, { provider }: Bridge): Promise<Interaction | undefined> {
  try {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res)
    return interaction.uid === ctx.state.params['uid'] ? interaction : undefined
  } catch (error) {
    if (error instanceof errors.SessionNotFound) return undefined
    throw error
  }
}

const withInteraction =
  (serve: (interaction: Interaction) => typeof signInFor): Handler =>
  async (ctx, bridge) => {
    const interaction = await findInteraction(ctx, bridge)
    if (!interaction) return sayExpired(ctx, bridge)
    await serve(interaction)(ctx, bridge, interaction)
  }

export const handlers = {
  interact: withInteraction(({ prompt }) => (prompt.name === 'login' ? signInFor : showConsent)),
  answer: withInteraction(() => answerConsent),
  chooseUser,
  comeBack,
  showAccount,
  changeAccount,
  signInForAccount,
} satisfies Record<string, Handler>

export type Handlers = typeof handlers
