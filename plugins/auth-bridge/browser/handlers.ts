// What answers at the pages of people; loaded with the first request, as oidc-provider is.
import { errors, type Interaction } from 'oidc-provider'
import { type HostContext, isObject } from '../../../core/index.ts'
import { changeAccount, showAccount } from './account-page.ts'
import type { Bridge } from './bridge.ts'
import { answerConsent, askConsent, sayExpired } from './consent.ts'
import { chooseUser, comeBack, signInFor, signInForAccount } from './sign-in.ts'

type Handler = (ctx: HostContext, bridge: Bridge) => Promise<void>

const fieldsOf = ({ request }: HostContext): Record<string, unknown> => (isObject(request.body) ? request.body : {})

/** The interaction that this browser is in; the cookie and the address name the same. Undefined where it has expired. */
async function findInteraction(ctx: HostContext, { provider }: Bridge): Promise<Interaction | undefined> {
  try {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res)
    return interaction.uid === ctx.state.params['uid'] ? interaction : undefined
  } catch (error) {
    if (error instanceof errors.SessionNotFound) return undefined
    throw error
  }
}

const interact: Handler = async (ctx, bridge) => {
  const interaction = await findInteraction(ctx, bridge)
  if (!interaction) return sayExpired(ctx, bridge)
  const serve = interaction.prompt.name === 'login' ? signInFor : askConsent
  await serve(ctx, bridge, interaction)
}

const answer: Handler = async (ctx, bridge) => {
  const interaction = await findInteraction(ctx, bridge)
  if (!interaction) return sayExpired(ctx, bridge)
  await answerConsent(ctx, bridge, interaction, fieldsOf(ctx))
}

/** By what they do. */
export const handlers = {
  interact,
  answer,
  chooseUser,
  comeBack,
  showAccount,
  changeAccount: (ctx, bridge) => changeAccount(ctx, bridge, fieldsOf(ctx)),
  signInForAccount,
} satisfies Record<string, Handler>

export type Handlers = typeof handlers
