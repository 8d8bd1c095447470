// The page on which a person says who they are and whether this client may: GET shows it, a click answers it.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type Provider from 'oidc-provider'
import type { Interaction } from 'oidc-provider'
import { type HostContext, HostError, isObject } from '../../core/index.ts'
import type { DevUser } from './users.ts'

const escapeHtml = (text: string) => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

const asText = (value: unknown): string => (typeof value === 'string' ? value : '')

interface Question {
  readonly client: string
  readonly redirectUri: string
  readonly resources: readonly string[]
  readonly scopes: readonly string[]
  readonly users: readonly DevUser[]
  readonly token: string
}

function page({ client, redirectUri, resources, scopes, users, token }: Question): string {
  const items = (texts: readonly string[]) => texts.map(text => `<li>${escapeHtml(text)}</li>`).join('')
  const buttons = users.map(
    ({ id, name = id }) =>
      `<p><button name="account" value="${escapeHtml(id)}">Allow as ${escapeHtml(name)}</button></p>`,
  )
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Sign in (development)</title>
<h1>Allow ${escapeHtml(client)}?</h1>
<p>This is a development server: it asks for no password.</p>
<p>The answer goes to <code>${escapeHtml(redirectUri)}</code>.</p>
<p>It asks for a token for:</p><ul>${items(resources)}</ul>
<p>with the scopes:</p><ul>${items(scopes)}</ul>
<form method="post"><input type="hidden" name="csrf" value="${token}">
${buttons.join('\n')}
<p><button name="deny" value="yes">Deny</button></p>
</form></html>
`
}

/** The fields of the form; one that is there twice is none. */
const fieldsOf = ({ request }: HostContext): Record<string, unknown> => (isObject(request.body) ? request.body : {})

/** What was asked for is what is granted: known scopes for each resource, the others come to nothing. */
async function grantAccess(provider: Provider, { grantId, session, params }: Interaction, accountId: string) {
  const kept =
    grantId !== undefined && session?.accountId === accountId ? await provider.Grant.find(grantId) : undefined
  const grant = kept ?? new provider.Grant({ accountId, clientId: asText(params['client_id']) })
  const scope = asText(params['scope'])
  if (scope !== '') grant.addOIDCScope(scope)
  for (const resource of [params['resource']].flat()) {
    if (typeof resource === 'string' && scope !== '') grant.addResourceScope(resource, scope)
  }
  return grant.save()
}

/** The handlers of the consent page. */
export function createConsent(getProvider: () => Promise<Provider>, users: readonly DevUser[]) {
  const key = randomBytes(32)
  const tokenOf = (uid: string) => createHmac('sha256', key).update(uid).digest('base64url')

  /** The sign-in that this browser is in; its cookie and the address must name the same. */
  async function findInteraction(ctx: HostContext, provider: Provider): Promise<Interaction> {
    const expired = { detail: 'this sign-in has expired or is not of this browser; start again from the client' }
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(cause => {
      throw new HostError('invalidRequest', { ...expired, cause })
    })
    if (interaction.uid !== ctx.state.params['uid']) throw new HostError('invalidRequest', expired)
    return interaction
  }

  async function show(ctx: HostContext) {
    const provider = await getProvider()
    const { uid, params } = await findInteraction(ctx, provider)
    const clientId = asText(params['client_id'])
    const client = await provider.Client.find(clientId)
    ctx.type = 'html'
    ctx.body = page({
      client: client?.clientName ?? clientId,
      redirectUri: asText(params['redirect_uri']),
      resources: [params['resource']].flat().map(asText),
      scopes: asText(params['scope']).split(' ').filter(Boolean),
      users,
      token: tokenOf(uid),
    })
  }

  async function answer(ctx: HostContext) {
    const provider = await getProvider()
    const interaction = await findInteraction(ctx, provider)
    const { csrf, account, deny } = fieldsOf(ctx)
    const given = Buffer.from(asText(csrf))
    const expected = Buffer.from(tokenOf(interaction.uid))
    if (given.length !== expected.length || !timingSafeEqual(given, expected))
      throw new HostError('forbidden', { detail: 'the form is not of this page' })
    const user = users.find(({ id }) => id === account)
    const denied = deny !== undefined
    if (!denied && !user) throw new HostError('invalidRequest', { detail: 'there is no such user' })
    const result =
      denied || !user
        ? { error: 'access_denied', error_description: 'the user said no' }
        : { login: { accountId: user.id }, consent: { grantId: await grantAccess(provider, interaction, user.id) } }
    ctx.respond = false
    await provider.interactionFinished(ctx.req, ctx.res, result)
  }

  return { show, answer }
}
