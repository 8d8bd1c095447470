// Who protects the server, and who authorizes for it: the entry of both halves of discovery, and the choice between them.
import type { ClientContext } from './context.ts'
import { AuthError } from './errors.ts'
import { printableUrl } from './printable.ts'
import type { ResourceInfo } from './resource-metadata.ts'

export { discoverResource, type ResourceInfo } from './resource-metadata.ts'
export { discoverServer } from './server-metadata.ts'

/**
 * The authorization server to use, as the resource lists it: what `authServerSelector` picks, else the first. Throws an
 * AuthError `no_authorization_server` where the selector picks none, `invalid_options` where its pick is not listed.
 */
export async function selectServer(ctx: ClientContext, resource: ResourceInfo): Promise<string> {
  const { authServerSelector } = ctx.options
  const listed = resource.authorizationServers
  const [first] = listed
  const picked = authServerSelector ? await authServerSelector([...listed]) : first
  if (picked === null || picked === undefined) {
    throw new AuthError(`authServerSelector picked none of ${listed.map(url => printableUrl(url)).join(', ')}`, {
      code: 'no_authorization_server',
      fix: 'return one of the listed addresses',
    })
  }
  if (!listed.includes(picked)) {
    throw new AuthError(`authServerSelector picked "${printableUrl(String(picked))}", which the server does not list`, {
      code: 'invalid_options',
      fix: `return one of: ${listed.map(url => printableUrl(url)).join(', ')}, exactly as listed`,
    })
  }
  // Nothing has checked them yet.
  const about = { issuer: printableUrl(picked), listed: listed.map(url => printableUrl(url)) }
  if (!authServerSelector && listed.length > 1) ctx.emit('several-authorization-servers', about)
  ctx.emit('authorization-server-selected', about)
  return picked
}
