// The bridge: this host is the authorization server of its MCP clients, and people sign in with the company's identity
// provider. docs/plugins/auth-bridge.md.
import { assertInstalled } from '../../core/auth.ts'
import { definePlugin } from '../../core/index.ts'
import { type AuthBridgeOptions, type FilledAuthBridge, optionsSchema } from './options.ts'

export type { AuthBridgeOptions } from './options.ts'
export { auth0, entra, github, google, keycloak, oauth, oidc, okta } from './presets.ts'

export const authBridge = definePlugin<AuthBridgeOptions, FilledAuthBridge>({
  options: optionsSchema,
  provides: ['authorizationServer', 'upstreamTokens'],
  async examine(options, about) {
    const { examine } = await import('./doctor/examine.ts')
    return examine(options, about)
  },
  async setup(host, options) {
    if (host.routes.length === 0) return
    assertInstalled(['oidc-provider'], host)
    const { setUpBridge } = await import('./set-up.ts')
    setUpBridge(host, options)
  },
})
