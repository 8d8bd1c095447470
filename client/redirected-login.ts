// Logins whose redirect URI is known only once something listens there (a loopback redirect on any free port): it is
// opened first, and everything that names it, the registration too, has its real address.
import { type Acquirer, createAcquirer } from './acquire.ts'
import type { ClientContext } from './context.ts'
import type { TokenStore } from './token-store.ts'

/** As `createAcquirer`, with a redirect of its own for each login where the context opens one. */
export function createRedirectingAcquirer(ctx: ClientContext, store: TokenStore, key: string): Acquirer {
  const plain = createAcquirer(ctx, store, key)
  const { openRedirect } = ctx
  if (!openRedirect) return plain
  return {
    ...plain,
    async login(before, need, prompt, signal) {
      const { redirectUri, delegate, close } = await openRedirect(before?.registration?.redirectUri)
      try {
        const options = { ...ctx.options, redirectUri, authorizationRedirectDelegate: delegate }
        return await createAcquirer({ ...ctx, options }, store, key).login(before, need, prompt, signal)
      } finally {
        await close()
      }
    },
  }
}
