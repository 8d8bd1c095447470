// For built-in authentication and authorization plugins: what package.json does not export.
export type { AuthorizationServer, PublicJwk, UserPage, UserPages } from './access/authorization-server.ts'
export { createItemAuthorizer } from './access/authorize.ts'
export {
  loginExpired,
  NO_PROOFS,
  type ProofPolicy,
  type ProofProblem,
  requireResource,
  sameResources,
} from './access/bearer.ts'
export { claimAt, STREAMS_OUTLIVE_TOKEN_SCHEMA, stringsAt, writeClaim } from './access/claims.ts'
export { basicCredentials, fetchJson, readLimited } from './access/fetch-json.ts'
export { attributeError } from './http/describe-thrown.ts'
export { addressKey, isLoopback } from './http/guard.ts'
export { parseJson } from './http/json-body.ts'
export { assertInstalled } from './http/optional-packages.ts'
export { canonicalPath, parseHost, redactUrl } from './http/request-target.ts'
export { publicKeyTypeOf } from './kernel/secrets.ts'
export { userKey } from './kernel/user.ts'
export type { ItemKind, ResourceItem, ToolItem } from './mcp/definitions/catalog.ts'
export { globsOverlap, matchesGlob } from './mcp/glob.ts'
export { canSubscribeNow, findResource, findSubscribable } from './mcp/methods/resources.ts'
export type { ProtectedResource, TokenBinding } from './mcp/routes/access-decider.ts'
export {
  ENDPOINT_URL_PATTERN,
  HTTP_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  icon,
  KEYS_URL,
  LISTEN_ADDRESS,
  SCOPE,
} from './mcp/schema/schema-parts.ts'
export { createMemoryStore, type MemoryDump } from './store/memory-store.ts'
export type { Store } from './store/store.ts'
