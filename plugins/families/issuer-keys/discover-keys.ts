// Where an issuer's keys are, by what it publishes of itself: RFC 8414 first, then OpenID Connect Discovery.
import { fetchJson } from '../../../core/auth.ts'
import { isObject } from '../../../core/index.ts'

/** The documents that may describe an issuer, in the order in which they are asked for. */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

/** What is wrong with a document, or where it says that the keys are. */
function readMetadata(body: unknown, issuer: string): { problem: string } | { jwksUri: string } {
  if (!isObject(body)) return { problem: 'is no JSON object' }
  if (body['issuer'] !== issuer) {
    return { problem: `is of the issuer ${JSON.stringify(body['issuer'])}, the config says ${JSON.stringify(issuer)}` }
  }
  const jwksUri = body['jwks_uri']
  if (typeof jwksUri !== 'string' || !URL.canParse(jwksUri)) return { problem: 'has no jwks_uri' }
  const { protocol } = new URL(jwksUri)
  const fits = protocol === 'https:' || (protocol === 'http:' && issuer.startsWith('http:'))
  return fits ? { jwksUri } : { problem: `has a jwks_uri of ${protocol}` }
}

/** Rejects with all that was tried; `issuer` must be exactly what the document says of itself. */
export async function discoverKeys(issuer: string, signal: AbortSignal): Promise<string> {
  const problems: string[] = []
  for (const url of metadataUrls(issuer)) {
    const { status, body } = await fetchJson(url, { signal })
    const found = status === 200 ? readMetadata(body, issuer) : { problem: `answers ${status}` }
    if ('jwksUri' in found) return found.jwksUri
    problems.push(`${url} ${found.problem}`)
  }
  throw new Error(problems.join('; '))
}
