// One question to the authorization server about one token (RFC 7662), as a client that it knows.
import { type Claims, fetchJson, shownUrl } from '../../core/auth.ts'
import { isObject } from '../../core/index.ts'

export interface IntrospectionClient {
  readonly endpoint: string
  readonly clientId: string
  readonly clientSecret: string
  readonly clientAuth: 'basic' | 'post'
  readonly signal: AbortSignal
}

/** As RFC 6749 section 2.3.1 wants both before they are joined: form-encoded. */
const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)

/** What the server says of the token; undefined: it is not active. Rejects where it does not say. */
export async function introspect(token: string, client: IntrospectionClient): Promise<Claims | undefined> {
  const { endpoint, clientId, clientSecret, clientAuth, signal } = client
  const form = new URLSearchParams({ token, token_type_hint: 'access_token' })
  const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' }
  if (clientAuth === 'post') {
    form.set('client_id', clientId)
    form.set('client_secret', clientSecret)
  } else {
    const credentials = Buffer.from(`${encoded(clientId)}:${encoded(clientSecret)}`).toString('base64')
    headers['Authorization'] = `Basic ${credentials}`
  }
  const { status, body } = await fetchJson(endpoint, { method: 'POST', body: form.toString(), headers, signal })
  const shown = shownUrl(endpoint)
  if (status === 401 || status === 403) throw new Error(`${shown} answers ${status}: check clientId and clientSecret`)
  if (status !== 200) throw new Error(`${shown} answers ${status}`)
  if (!isObject(body) || typeof body['active'] !== 'boolean')
    throw new Error(`${shown} does not answer as RFC 7662 says`)
  return body['active'] ? body : undefined
}
