// Asks the token endpoint with a code that was made up: a provider that says that the code is none has taken the secret.
import { randomBytes } from 'node:crypto'
import { jsonOf } from '../upstream/ask.ts'
import { type Connection, through } from '../upstream/connection.ts'
import { explain } from '../upstream/explain.ts'
import { type Refusal, refusalIn, refusalWords } from '../upstream/refusal.ts'
import { type Findings, failed, note, ok, withRedirectUri, wrong } from './finding.ts'

const CHECK = 'client secret'

/** The code is none, which only somebody hears who showed the secret. */
const KNOWS_US = /^(?:invalid_grant|bad_verification_code)$/
/** Of Entra: whatever the code, a mistake of the set-up. */
const IS_SET_UP = /\bAADSTS(?:7000\d{3}|700016|90002|50011|65005\d|9010010|28000|70011)\b/

async function refusalOf(response: Response): Promise<Refusal | undefined> {
  const isForm = response.headers.get('content-type')?.startsWith('application/x-www-form-urlencoded') ?? false
  if (!isForm) return refusalIn(await jsonOf(response))
  return refusalIn(Object.fromEntries(new URLSearchParams(await response.text())))
}

function judge(
  { settings: { type, clientSecret } }: Connection,
  refusal: Refusal,
  redirectUri: string,
  secrets: readonly string[],
): Findings {
  const { code = '', description } = refusal
  const said = refusalWords(refusal, secrets)
  const isOurs = IS_SET_UP.test(description ?? '')
  if (KNOWS_US.test(code) && !isOurs) {
    const what = clientSecret === undefined ? 'the client without a secret' : 'the client id and the secret'
    return [ok(CHECK, `the provider takes ${what}`)]
  }
  if (code === 'invalid_request' && !isOurs)
    return [note(CHECK, `the provider cannot be asked for it with a code that was made up: ${said}`)]
  const fix = explain({ type, code, description })?.fix ?? 'check clientId, clientSecret and authMethod'
  return [wrong(CHECK, `the token endpoint refused: ${said}`, withRedirectUri(fix, redirectUri))]
}

export async function checkToken(connection: Connection, redirectUri: string): Promise<Findings> {
  const { oauth, server, client, authenticate, settings } = connection
  const [code, state, verifier] = [0, 1, 2].map(() => randomBytes(32).toString('base64url')) as [string, string, string]
  const iss = server.authorization_response_iss_parameter_supported ? { iss: server.issuer } : {}
  const callback = oauth.validateAuthResponse(server, client, new URLSearchParams({ code, state, ...iss }), state)
  const options = { ...through(connection), headers: { Accept: 'application/json' } }
  try {
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      authenticate,
      callback,
      redirectUri,
      verifier,
      options,
    )
    const refusal = await refusalOf(response)
    if (refusal) return judge(connection, refusal, redirectUri, [settings.clientSecret ?? '', code, state, verifier])
    const fix = 'check that the issuer, or the endpoints, are those of the provider'
    return [wrong(CHECK, `the token endpoint answers ${response.status} and says no reason`, fix)]
  } catch (error) {
    return [failed(CHECK, error)]
  }
}
