// Who protects the server and who authorizes for it: the resource's metadata, the authorization server of choice and its
// metadata. Asked for anew at every challenge and login, because servers move (SEP-2352); a refresh that nobody
// challenged may use what is known, for an hour.

import type { ClientContext } from './context.ts'
import { discoverResource, discoverServer, type ResourceInfo, selectServer } from './discovery.ts'
import type { ServerInfo } from './parties.ts'
import { printableUrl } from './printable.ts'

/** Milliseconds. */
const MAX_AGE = 3_600_000

export interface Authority {
  readonly info: ResourceInfo
  readonly server: ServerInfo
  /** The `resource` parameter of every request (RFC 8707); undefined: none is sent. */
  readonly resource: string | undefined
}

export interface AuthorityFinder {
  /** From the metadata documents that a challenge names, or from the well-known places. */
  find(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority>
  /** What was found within the last hour, or `find`. */
  known(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority>
}

export function createAuthorityFinder(ctx: ClientContext): AuthorityFinder {
  const { options, emit, now } = ctx
  let found: { readonly authority: Authority; readonly at: number } | undefined

  function resourceOf(info: ResourceInfo): string | undefined {
    if (options.resourceIndicator === 'auto') return info.resource
    return options.resourceIndicator === 'omit' ? undefined : options.resourceIndicator
  }

  async function find(metadataUrls: readonly string[], signal: AbortSignal): Promise<Authority> {
    const info = await discoverResource(ctx, metadataUrls, signal)
    emit('resource-metadata-found', {
      url: printableUrl(info.metadataUrl ?? options.serverUrl),
      resource: info.resource,
    })
    const listed = await selectServer(ctx, info)
    const server = await discoverServer(ctx, listed, info.legacy, signal, options.tokenEndpoint)
    emit('authorization-server-found', { issuer: server.issuer, url: server.metadataUrl })
    const authority = { info, server, resource: resourceOf(info) }
    found = { authority, at: now() }
    return authority
  }

  return {
    find,
    known(metadataUrls, signal) {
      if (found && now() - found.at < MAX_AGE) return Promise.resolve(found.authority)
      return find(metadataUrls, signal)
    },
  }
}
