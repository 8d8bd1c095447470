// Handlers of the pages, including the account page, where users revoke access.

import { errors, type Interaction } from 'oidc-provider'
import type { HostContext } from '../../../core/plugin.ts'
import { formToken, isFormToken } from '../../families/credentials/index.ts'
import { sendPage } from '../../families/pages/index.ts'
import type { Bridge } from '../make.ts'
import type { Login } from '../people/logins.ts'
import { browserOf, fieldsOf, pathOf } from './browser.ts'
import { answerConsent, askConsent } from './consent.ts'
import { chooseUser, comeBack, currentLogin, sayExpired, signInFor, signInForAccount } from './sign-in.ts'

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
  interact: withInteraction(({ prompt }) => (prompt.name === 'login' ? signInFor : askConsent)),
  answer: withInteraction(() => answerConsent),
  chooseUser,
  comeBack,
  showAccount,
  changeAccount,
  signInForAccount,
} satisfies Record<string, Handler>

export type Handlers = typeof handlers
