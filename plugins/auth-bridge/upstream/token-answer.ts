// What a token endpoint answered, brought to what RFC 6749 says before oauth4webapi reads it: vendors answer in forms, with
// errors under 200, lists of scopes, and nulls.
import type { TokenEndpointResponse } from 'oauth4webapi'
import { isObject } from '../../../core/index.ts'
import { jsonOf } from './ask.ts'
import { type Connection, through } from './connection.ts'
import { refusalError, refusalIn, unreadable } from './refusal.ts'
import { type ProviderTokens, UpstreamError } from './upstream.ts'

const isForm = (response: Response) =>
  response.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded') ?? false

/** Its members without nulls, and with the scopes as a text. */
function settled(body: Record<string, unknown>): Record<string, unknown> {
  const members = Object.entries(body).filter(([, value]) => value !== null)
  const { scope, expires_in, ...rest } = Object.fromEntries(members)
  const texts = Array.isArray(scope) ? scope.filter(one => typeof one === 'string').join(' ') : scope
  const seconds = Number(expires_in)
  return {
    // RFC 6749 wants it; some leave it out, and none of them means anything else.
    token_type: 'bearer',
    ...rest,
    ...(typeof texts === 'string' && { scope: texts }),
    ...(expires_in !== undefined && Number.isFinite(seconds) && seconds >= 0 && { expires_in: seconds }),
  }
}

export interface AnswerContext {
  /** For messages: which grant it was. */
  readonly grant: string
  /** What was sent, which no message may repeat. */
  readonly secrets: readonly (string | undefined)[]
  /** An ID token in it is nobody's proof here. */
  readonly ignoreIdToken?: boolean
  readonly forScopes?: boolean
}

/** The answer as oauth4webapi reads it. Throws an UpstreamError where it is a refusal. */
export async function settleAnswer(
  connection: Connection,
  response: Response,
  context: AnswerContext,
): Promise<Response> {
  const { type, clientSecret } = connection.settings
  const what = `the token endpoint (${context.grant})`
  const body = isForm(response)
    ? Object.fromEntries(new URLSearchParams(await response.clone().text()))
    : await jsonOf(response)
  const refusal = refusalIn(body)
  if (refusal) {
    const { forScopes = false } = context
    throw refusalError(refusal, { type, what, secrets: [...context.secrets, clientSecret], forScopes })
  }
  if ((response.status !== 200 && response.status !== 201) || !isObject(body)) throw unreadable(what, response.status)
  const members = settled(body)
  if (context.ignoreIdToken || !connection.settings.kind.openid) delete members['id_token']
  return new Response(JSON.stringify(members), { headers: { 'content-type': 'application/json' } })
}

/** Runs what checks an answer: what it throws becomes an UpstreamError without the answer, which its errors carry. */
export async function checking<Value>(what: string, check: () => Promise<Value> | Value): Promise<Value> {
  try {
    return await check()
  } catch (thrown) {
    if (thrown instanceof UpstreamError) throw thrown
    // Its sentences are fixed texts; what they are about is in the cause, which stays here.
    const reason = thrown instanceof Error ? thrown.message : 'it is not what was asked for'
    throw new UpstreamError('untrusted', `${what}: ${reason}`)
  }
}

/** True where no key of the provider fits: it may have new ones. */
const lacksKey = (connection: Connection, thrown: unknown) =>
  thrown instanceof connection.oauth.OperationProcessingError && thrown.code === connection.oauth.KEY_SELECTION

/** Checks the signature of what oauth4webapi read from this response, with the provider's keys. */
export async function checkSignature(connection: Connection, response: Response): Promise<void> {
  const { oauth, server } = connection
  await checking('the signature', async () => {
    try {
      await oauth.validateApplicationLevelSignature(server, response, through(connection))
    } catch (thrown) {
      if (!lacksKey(connection, thrown)) throw thrown
      // It keeps keys by the object, and fetches none for a minute: a copy has none yet.
      await oauth.validateApplicationLevelSignature({ ...server }, response, through(connection))
    }
  })
}

/** Milliseconds since the epoch, `asked` being when the request began: the token lives no longer than that says. */
const endOf = (asked: number, seconds: number | undefined) =>
  seconds === undefined ? undefined : asked + seconds * 1_000

/** The tokens of an answer, over those that there were: what it does not say again stands. */
export function tokensOf(
  { settings }: Connection,
  answer: TokenEndpointResponse,
  { asked, last, wanted }: { asked: number; last?: ProviderTokens; wanted: readonly string[] },
): ProviderTokens {
  const { access_token, expires_in, refresh_token = last?.refreshToken, id_token = last?.idToken, scope } = answer
  const expiresAt = endOf(asked, expires_in)
  return {
    accessToken: access_token,
    ...(expiresAt !== undefined && { expiresAt }),
    ...(refresh_token !== undefined && { refreshToken: refresh_token }),
    ...(id_token !== undefined && { idToken: id_token }),
    // RFC 6749, section 5.1: not said means as asked for.
    scopes: scope === undefined ? wanted : scope.split(settings.kind.separator).filter(one => one !== ''),
  }
}
