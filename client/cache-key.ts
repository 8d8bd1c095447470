// The name of a token container. Issuer and registration are not known before discovery, so it is made of what the caller
// says: which server, as whom, under which profile. What was discovered is stamped inside, and checked before each use.
import type { ResolvedOptions } from './resolve-options.ts'

type KeyOptions = Pick<ResolvedOptions, 'serverUrl' | 'clientId' | 'clientMetadataDocumentUri' | 'grant' | 'profile'>

/** 43 characters of base64url: a SHA-256. */
export async function createCacheKey({
  serverUrl,
  clientId,
  clientMetadataDocumentUri,
  grant,
  profile,
}: KeyOptions): Promise<string> {
  // A person's tokens are the same however they logged in; a program's own are not theirs.
  const acting = grant.type === 'device' ? 'authorization_code' : grant.type
  const identity = [serverUrl, clientId ?? clientMetadataDocumentUri ?? '', acting, profile ?? '']
  const bytes = new TextEncoder().encode(JSON.stringify(identity))
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))
  return btoa(String.fromCharCode(...hash))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}
