// Decides when a person must sign in or give consent. The checks of oidc-provider stay, except for native clients.
import { interactionPolicy } from 'oidc-provider'
import { isRemembered } from '../clients/client-rules.ts'
import { type Account, consentIn } from '../people/accounts.ts'
import type { ProviderContext } from './oidc-provider.ts'

type Prompt = NonNullable<ReturnType<ReturnType<typeof interactionPolicy.base>['get']>>

/** Adds a check to a prompt; the first check that fails decides the error of prompt=none. */
function addCheck(
  { checks }: Prompt,
  [reason, description, error]: readonly [string, string, string],
  check: (ctx: ProviderContext) => boolean,
  index?: number,
) {
  checks.add(new interactionPolicy.Check(reason, description, error, ctx => check(ctx as ProviderContext)), index)
}

/** What was answered just now is not asked again: `result` says so, of this grant. */
const wasAnswered = ({ oidc }: ProviderContext): boolean => {
  const { grantId } = (oidc.result?.['consent'] ?? {}) as { grantId?: string }
  return grantId !== undefined && grantId === oidc.grant.jti
}

/** A resource that the person was not asked about. */
const isElsewhere = (ctx: ProviderContext): boolean =>
  Object.keys(ctx.oidc.resourceServers).some(resource => !consentIn(ctx)?.resources.includes(resource))

/** Scopes of a resource that this person may have now, and that the grant has not. */
function isMoreThanGranted({ oidc }: ProviderContext): boolean {
  const account = oidc.account as Account | undefined
  return Object.entries(oidc.resourceServers).some(([resource, { scopes }]) => {
    const granted = new Set(oidc.grant.getResourceScope(resource).split(' '))
    return [...oidc.requestParamScopes].some(
      scope => scopes.has(scope) && !granted.has(scope) && account?.standing.mayHave(scope) === true,
    )
  })
}

/** `choosesUser`: each authorization request shows the sign-in page, to choose another user. */
export function createPolicy(choosesUser: boolean) {
  const policy = interactionPolicy.base()
  const [login, consent] = policy
  if (!login || !consent) throw new Error('oidc-provider has no prompts')
  if (choosesUser)
    addCheck(login, ['choose_user', 'a user must be chosen', 'login_required'], ({ oidc }) => {
      return oidc.result?.['login'] === undefined
    })
  addCheck(login, ['login_ended', 'the login has ended', 'login_required'], ({ oidc }) => {
    return oidc.session.accountId !== undefined && oidc.account === undefined
  })
  consent.checks.remove('native_client_prompt')
  const eachTime = ['asked_each_time', 'this client needs consent each time', 'consent_required'] as const
  addCheck(consent, eachTime, ctx => !isRemembered(ctx.oidc.client) && !wasAnswered(ctx), 0)
  addCheck(consent, ['not_asked_yet', 'the user has not allowed this client yet', 'consent_required'], ctx => {
    // An unsaved grant has no id.
    return ctx.oidc.grant.jti === undefined && !wasAnswered(ctx)
  })
  addCheck(consent, ['more_resources', 'the client requests a token for another resource', 'consent_required'], ctx => {
    return !wasAnswered(ctx) && isElsewhere(ctx)
  })
  addCheck(consent, ['more_scopes', 'the client requests more scopes than were allowed', 'consent_required'], ctx => {
    return !wasAnswered(ctx) && isMoreThanGranted(ctx)
  })
  return policy
}
