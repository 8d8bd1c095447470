// mcp-host/client: a portable OAuth client for protected MCP servers. Requires `fetch` and WebCrypto.

export { type AuthFetch, createAuthFetch } from './auth-fetch.ts'
export { entra, google, toAuthProvider } from './compat.ts'
export { AuthError, InteractionRequiredError, RegistrationRejectedError, type Setting } from './errors.ts'
export type { AuthEvent } from './events.ts'
export { createMemoryFlowStore, type FlowStore } from './flow-store.ts'
export type { ClientOAuthOptions } from './options.ts'
export { createMemoryTokenCache, type TokenCache, type TokenContainer } from './token-cache.ts'
