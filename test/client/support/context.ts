// A ClientContext for tests of single steps, from options of a caller. `events` contains its events.
import type { ClientContext } from '../../../client/context.ts'
import { type AuthEvent, createEmit } from '../../../client/events.ts'
import { createOAuthHttp } from '../../../client/http.ts'
import { createNetPolicy } from '../../../client/net-policy.ts'
import type { ClientOAuthOptions } from '../../../client/options.ts'
import { resolveOptions } from '../../../client/resolve-options.ts'
import { createSecrets } from '../../../client/text.ts'

export interface TestContext extends ClientContext {
  readonly events: readonly AuthEvent[]
}

export function testContext(
  options: Partial<ClientOAuthOptions> = {},
  { now = Date.now, timeoutMs }: { readonly now?: () => number; readonly timeoutMs?: number } = {},
): TestContext {
  const resolved = resolveOptions({
    serverUrl: 'http://127.0.0.1:1/mcp',
    redirectUri: 'http://127.0.0.1:8765/callback',
    ...(options.clientSecret !== undefined && { clientIssuer: 'https://as.example' }),
    ...options,
  })
  const events: AuthEvent[] = []
  const secrets = createSecrets()
  const policy = createNetPolicy(resolved.serverUrl, resolved.networkPolicy)
  return {
    options: resolved,
    secrets,
    http: createOAuthHttp({
      fetch: resolved.fetch,
      policy,
      secrets,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    }),
    emit: createEmit('test', event => {
      events.push(event)
      options.onEvent?.(event)
    }),
    now,
    events,
  }
}
