// Reads the challenge for clients without a valid token (RFC 6750 section 3, RFC 9728 section 5.1).
import type { IncomingHttpHeaders } from 'node:http'
import { parseChallengeList } from '../../client/challenge.ts'
import { bearer, createRequest, type Finding, reportOn, request, type Target } from './request.ts'

const { ok, note, wrong } = reportOn('challenge')

const isToken = ({ scheme }: { readonly scheme: string }) => scheme === 'bearer' || scheme === 'dpop'

/** Parameters of a Bearer or DPoP challenge by lower-case name; undefined without a challenge. */
export function readChallenge(headers: IncomingHttpHeaders): ReadonlyMap<string, string> | undefined {
  const challenge = parseChallengeList(headers['www-authenticate'] ?? '').find(isToken)
  return challenge && new Map([...challenge.params].map(([name, [value = '']]) => [name, value]))
}

const INVALID = 'an-invalid-token-of-mcp-host-doctor'

async function checkInvalidToken({ url }: Target): Promise<Finding> {
  const { status, headers } = await request(url, createRequest('tools/list', {}, bearer(INVALID)))
  const error = readChallenge(headers)?.get('error')
  if (status === 503) return wrong('Tokens cannot be checked: 503', 'See `identity provider` below, and the log.')
  if (status < 400) return wrong('An invalid token is accepted', 'Enable auth-jwt on this route, with all checks.')
  if (status === 401 && error === 'invalid_token') return ok('An invalid token gets 401 invalid_token')
  const found = `An invalid token gets ${status}, error ${error ?? 'none'}; expected 401 invalid_token`
  return wrong(found, 'Let the proxy forward Authorization and WWW-Authenticate.')
}

function checkHeader({ headers }: Target['first']): Finding[] {
  const challenge = readChallenge(headers)
  if (!challenge)
    return [
      wrong('401 without a Bearer or DPoP challenge', 'Let the proxy in front of the host pass WWW-Authenticate.'),
    ]
  const others = parseChallengeList(headers['www-authenticate'] ?? '').filter(one => !isToken(one))
  const schemes = others.map(({ scheme }) => scheme).join(', ')
  const metadata = challenge.get('resource_metadata')
  const findings = [
    metadata === undefined && wrong('401 without resource_metadata', 'Enable the plugin resource-metadata.'),
    metadata !== undefined &&
      !URL.canParse(metadata) &&
      wrong(`resource_metadata is not an absolute URL: ${metadata}`, 'Set http.publicUrl.'),
    challenge.has('error') &&
      wrong('A call without a token gets a token error', 'Remove the Authorization header that a proxy adds.'),
    !challenge.has('scope') && note('401 names no scope: clients request all of scopes_supported'),
  ].filter(finding => finding !== false)
  return [
    ...(schemes === '' ? [] : [note(`Other credentials are accepted: ${schemes}`)]),
    ...(findings.length > 0 ? findings : [ok('401 names the metadata and the scope')]),
  ]
}

export async function checkChallenge(target: Target): Promise<Finding[]> {
  if (target.first.status === 401) return [...checkHeader(target.first), await checkInvalidToken(target)]
  if (target.first.status !== 200) return []
  const { status } = await request(target.url, createRequest('tools/list', {}, bearer(INVALID)))
  const text = `Anyone can call this route; ${status === 401 ? 'invalid tokens are refused' : 'tokens are not checked'}`
  return [note(text, 'To protect it, set `authorize: true` on the route and enable auth-jwt.')]
}
