// mcp-host/client: call protected MCP servers as if there were no OAuth. Runs wherever `fetch` and WebCrypto do.

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
