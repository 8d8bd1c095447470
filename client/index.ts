// mcp-host/client: a portable OAuth client for protected MCP servers. Requires `fetch` and WebCrypto.

export { type AuthFetch, createAuthFetch } from './auth-fetch.ts'
export { entra, google, type McpAuthProvider, toAuthProvider } from './compat.ts'
export {
  AuthError,
  type AuthErrorCode,
  type AuthErrorOptions,
  InteractionRequiredError,
  RegistrationRejectedError,
} from './errors.ts'
export type { AuthEvent, AuthEventType } from './events.ts'
export { createMemoryFlowStore, type FlowRecord, type FlowStore } from './flow-store.ts'
export type { NetworkPolicy } from './net-policy.ts'
export type {
  AssertionContext,
  AuthorizationCallbackHandler,
  AuthorizationRedirectDelegate,
  AuthorizationResponse,
  ClientAuth,
  ClientOAuthOptions,
  DynamicClientRegistration,
  Grant,
  IdentityProvider,
  RegistrationResponse,
  UserCodeInfo,
} from './options.ts'
export type { AuthSession, SessionStatus } from './session.ts'
export type { CacheContext, LoginLease, Registration, TokenCache, TokenContainer } from './token-cache.ts'
export { createMemoryTokenCache } from './token-cache.ts'
