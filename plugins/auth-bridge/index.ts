// The plugin `auth-bridge`: an authorization server for MCP clients with sign-in at an identity provider.
import { definePlugin } from '../../core/internal.ts'
import { createGrantStore, createMemoryGrantStore } from '../families/grant-store/index.ts'
import { refuseExposedHost } from './development/dev-auth-server.ts'
import { type AuthBridgeOptions, type FilledAuthBridge, isDevelopment, optionsSchema } from './options.ts'
import { NO_UPSTREAM } from './upstream-context.ts'

export { devAuthServer } from './development/dev-auth-server.ts'

export type { UpstreamContext, UpstreamTokenRequest } from './upstream-context.ts'

export const authBridge = definePlugin<AuthBridgeOptions, FilledAuthBridge>({
  options: optionsSchema,
  provides: ['authorizationServer'],
  context: NO_UPSTREAM,
  slots: {
    grantStore: (store, { clock }, isDefault) =>
      isDefault ? createMemoryGrantStore({}, clock.now) : createGrantStore(store),
  },
  async examine(options, about) {
    const { examine } = await import('./doctor.ts')
    return examine(options, about)
  },
  async setup(host, options) {
    if (isDevelopment(options)) refuseExposedHost(host)
    const { setUpBridge } = await import('./set-up.ts')
    await setUpBridge(host, options)
  },
})
