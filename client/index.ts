// mcp-host/client: a portable OAuth client for protected MCP servers. Requires `fetch` and WebCrypto.

export { type AuthFetch, createAuthFetch } from './auth-fetch.ts'
export { entra, google, toAuthProvider } from './compat.ts'
export { AuthError, InteractionRequiredError, RegistrationRejectedError, type Setting } from './errors.ts'
export type { AuthEvent } from './events.ts'
export type { ClientOAuthOptions } from './options.ts'
export {
  createMemoryFlowStore,
  createMemoryTokenCache,
  type FlowStore,
  type TokenCache,
  type TokenContainer,
} from './stores.ts'
