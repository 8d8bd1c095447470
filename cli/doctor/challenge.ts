// Reads the challenge for clients without a valid token (RFC 6750 section 3, RFC 9728 section 5.1).
import type { IncomingHttpHeaders } from 'node:http'
import { parseChallengeList } from '../../client/challenge.ts'
import type { Patient } from './ask.ts'
import { ask, bearer, type Finding, message, note, ok, wrong } from './ask.ts'

const CHECK = 'challenge'

/** Parameters of a Bearer or DPoP challenge by lower-case name; undefined without a challenge. */
export function readChallenge(headers: IncomingHttpHeaders): ReadonlyMap<string, string> | undefined {
  const challenges = parseChallengeList(headers['www-authenticate'] ?? '')
  const challenge = challenges.find(({ scheme }) => scheme === 'bearer' || scheme === 'dpop')
  return challenge && new Map([...challenge.params].map(([name, [value = '']]) => [name, value]))
}

/** The schemes of other challenges, such as `apikey`. */
const otherSchemes = ({ 'www-authenticate': text = '' }: IncomingHttpHeaders): string[] =>
  parseChallengeList(text).flatMap(({ scheme }) => (scheme === 'bearer' || scheme === 'dpop' ? [] : scheme))

const MADE_UP = 'a-token-that-the-doctor-made-up'

async function checkBadToken({ url }: Patient): Promise<Finding> {
  const { status, headers } = await ask(url, message('tools/list', {}, bearer(MADE_UP)))
  const error = readChallenge(headers)?.get('error')
  if (status === 503)
    return wrong(CHECK, 'a token cannot be verified: 503', 'see `identity provider` below, and the log')
  if (status < 400)
    return wrong(CHECK, 'an invalid token is accepted', 'enable auth-jwt on this route, with all checks of `validate`')
  if (status !== 401 || error !== 'invalid_token')
    return wrong(
      CHECK,
      `an invalid token gets ${status}, error ${error ?? 'none'}; expected 401 invalid_token`,
      'configure the proxy to forward Authorization and WWW-Authenticate',
    )
  return ok(CHECK, 'an invalid token gets 401 invalid_token')
}

function checkHeader({ headers }: Patient['first']): Finding[] {
  const challenge = readChallenge(headers)
  const others = otherSchemes(headers)
  if (!challenge)
    return [
      wrong(
        CHECK,
        '401 without a Bearer or DPoP challenge: clients cannot discover where to log in',
        'configure the proxy to forward WWW-Authenticate',
      ),
    ]
  const findings: Finding[] = []
  if (others.length > 0) findings.push(note(CHECK, `other credentials are accepted: ${others.join(', ')}`))
  const metadata = challenge.get('resource_metadata')
  if (metadata === undefined)
    findings.push(wrong(CHECK, '401 without resource_metadata', 'switch on the plugin resource-metadata'))
  else if (!URL.canParse(metadata))
    findings.push(wrong(CHECK, `resource_metadata is no absolute URL: ${metadata}`, 'set http.publicUrl'))
  if (challenge.has('error'))
    findings.push(
      wrong(
        CHECK,
        'a call without a token gets a challenge about an invalid token',
        'configure the proxy not to add an Authorization header',
      ),
    )
  if (!challenge.has('scope')) findings.push(note(CHECK, '401 names no scope: clients request all of scopes_supported'))
  return findings.length > (others.length > 0 ? 1 : 0)
    ? findings
    : [...findings, ok(CHECK, '401 names the metadata and the scope')]
}

export async function checkChallenge(patient: Patient): Promise<Finding[]> {
  if (patient.first.status === 401) return [...checkHeader(patient.first), await checkBadToken(patient)]
  if (patient.first.status !== 200) return []
  const { status } = await ask(patient.url, message('tools/list', {}, bearer(MADE_UP)))
  const text =
    status === 401 ? 'anyone can call; tokens are verified if sent' : 'anyone can call; tokens are not verified'
  return [note(CHECK, text, 'to protect it, set `authorize: true` on the route and enable auth-jwt')]
}
