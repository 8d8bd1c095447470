// `mcp-host/auth`: for authentication and authorization plugins (docs/plugins.md, "Two phases").

export { authorizeRoute, createAdmission } from './access/authorize.ts'
export type { UnderTest } from './access/claims.ts'
export {
  CLAIM_PATHS_SCHEMA,
  type ClaimPaths,
  type Claims,
  claimAt,
  makeClaims,
  readUser,
  STREAMS_OUTLIVE_TOKEN_SCHEMA,
  type StreamOptions,
  stringsAt,
  writeClaim,
} from './access/claims.ts'
export { fetchJson, type JsonReply } from './access/fetch-json.ts'
export type { AuthorizationServer, PublicJwk } from './access/grant-store.ts'
export { checkGrantTtl, GRANT_KINDS, type GrantStore, grantKindOf } from './access/grant-store.ts'
export {
  identifyBearer,
  loginEnded,
  NO_POSSESSION,
  needResource,
  type Possession,
  type ProofFlaw,
  type ShownToken,
  sameResources,
  type TokenPlace,
  type TokenVerdict,
  type VerifyToken,
} from './access/identify-bearer.ts'
export type { Examination, PluginFinding } from './config/examination.ts'
export {
  ENDPOINT_URL_PATTERN,
  HTTP_URL_PATTERN,
  IDENTIFIER,
  ISSUER_URL,
  icon,
  KEYS_URL,
  LISTEN_ADDRESS,
  SCOPE,
} from './config/schema-parts.ts'
export { blame } from './http/describe-thrown.ts'
export { addressKey, isLoopback } from './http/guard.ts'
export { parseJson } from './http/json-body.ts'
export { assertInstalled, type NeededBy } from './http/optional-packages.ts'
export { canonicalPath, parseHost, shownUrl } from './http/request-target.ts'
export { publicKeyIn } from './kernel/secrets.ts'
export type {
  AccessDecider,
  AccessServices,
  Audience,
  Denial,
  DeniedCall,
  ProtectedResource,
  TokenBinding,
} from './mcp/access-decider.ts'
export type { CatalogItem, ItemKind, PromptItem, ResourceItem, ToolItem } from './mcp/catalog.ts'
export { globsOverlap, matchesGlob } from './mcp/glob.ts'
export { findResource, mayHear, mayHearNow } from './mcp/methods/resources.ts'
