// mcp-host/client: call protected MCP servers as if there were no OAuth. Runs wherever `fetch` and WebCrypto do.
export { type McpAuthProvider, toAuthProvider } from './adapters/mcp-auth-provider.ts'
export { type AuthFetch, createAuthFetch } from './auth-fetch.ts'
export { createMemoryTokenCache } from './cache/memory.ts'
export type { CacheContext, LoginLease, Registration, TokenCache, TokenContainer } from './cache/types.ts'
export { entra, google } from './compat.ts'
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
