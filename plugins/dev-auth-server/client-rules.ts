// Which clients may register, by DCR or by a metadata document: those that take their code on this machine.
import { isLoopback } from '../../core/auth.ts'
import { dropNulls } from '../families/oidc-provider/index.ts'

/** Why these redirect URIs are refused; undefined where they are not. */
export function redirectFault(uris: unknown): string | undefined {
  if (!Array.isArray(uris)) return undefined
  const foreign = uris.find(uri => {
    if (typeof uri !== 'string' || !URL.canParse(uri)) return true
    const { protocol, hostname, username, password } = new URL(uri)
    return protocol !== 'http:' || !isLoopback(hostname) || username !== '' || password !== ''
  })
  return foreign === undefined
    ? undefined
    : `redirect_uris: this server sends codes to http on loopback addresses only, not to ${JSON.stringify(foreign)}`
}

/** What every client here is, whatever it says of itself. */
export function settleMetadata(metadata: Record<string, unknown>): void {
  dropNulls(metadata)
  // The code comes back to this machine: a native client by RFC 8252, a browser's page on localhost among them.
  metadata['application_type'] = 'native'
  metadata['response_modes'] = ['query']
  // Registered scopes would bound later ones; a step-up asks for more than the client knew at first.
  delete metadata['scope']
}
