// The options of the built-in plugins in types, generated from their schemas by `npm run schema`: never edited by hand,
// change the `options` of the plugin. One file, and so a long one: an interface for each shape that some plugin can be
// told, and beside it the same with its defaults filled in. Nobody needs to read it from top to bottom.
import type { Duration, Size } from '../mcp/units.ts'
import type { RedisTls } from './shared-shapes.ts'

/** Streamable HTTP: POST on each route. */
export type TransportStreamableOptions = Record<never, never>

/** HTTP with SSE (2024-11-05): GET <route>/sse and POST <route>/message. */
export interface TransportSseOptions {
  /** Fewer requests of one session that may run at once than sessions.maxCallsPerSession; more are answered 429. */
  maxConcurrent?: number
}

/** Newline-delimited JSON over stdin and stdout, for `mcp-host stdio`. */
export interface TransportStdioOptions {
  /** Who calls, as routes and tools see it. Default: nobody, as without a token. */
  user?: StdioUser
  /** Requests of 2026-07-28 that may run at once, open subscriptions counted. Those of a session: sessions.maxCallsPerSession. Default `100`. */
  maxConcurrent?: number
}

/** Who calls, as routes and tools see it. Default: nobody, as without a token. */
export interface StdioUser {
  /** The user, as `sub` of a token names it. */
  subject: string
  /** Who issued that name. */
  issuer?: string
  /** The program that acts for the user. */
  clientId?: string
  /** What it may do. Default `[]`. */
  scopes?: string[]
  /** What it is. Default `[]`. */
  roles?: string[]
  /** What else a token would say. */
  claims?: Record<string, unknown>
}

/** TransportStdioOptions with its defaults filled in. */
export interface FilledTransportStdioOptions extends TransportStdioOptions {
  user?: FilledStdioUser
  maxConcurrent: number
}

/** StdioUser with its defaults filled in. */
export interface FilledStdioUser extends StdioUser {
  scopes: string[]
  roles: string[]
  claims: Record<string, unknown>
}

/** Protected resource metadata (RFC 9728): tells clients where to get a token. */
export interface ResourceMetadataOptions {
  /** The resource identifier of every route. Default: each address is its own. */
  resource?: string
  /** Issuers of the authorization servers that give out tokens for these routes. */
  authorizationServers: string[]
  /** Scopes that tokens for these routes may have. */
  scopesSupported?: string[]
  /** How a token may be presented. Default `['header']`. */
  bearerMethodsSupported?: Array<'header' | 'body' | 'query'>
  /** Where the one document is, instead of the well-known paths: a path or a URL. Needs resource. */
  resourceMetadataUri?: string
  /** Name for people. */
  resourceName?: string
  /** A page for developers. */
  resourceDocumentation?: string
  /** A page on how clients may use the data. */
  resourcePolicyUri?: string
  /** The terms of service. */
  resourceTosUri?: string
  /** The resource's own public keys. */
  jwksUri?: string
  /** Algorithms by which the resource signs its answers. */
  resourceSigningAlgValuesSupported?: string[]
  /** Tokens can be bound to the certificate of their client. */
  tlsClientCertificateBoundAccessTokens?: boolean
  /** Types of authorization_details (RFC 9396). */
  authorizationDetailsTypesSupported?: string[]
  /** Algorithms of DPoP proofs (RFC 9449). */
  dpopSigningAlgValuesSupported?: string[]
  /** Tokens must be bound by DPoP. True stops the start: nothing enforces it yet. */
  dpopBoundAccessTokensRequired?: boolean
}

/** ResourceMetadataOptions with its defaults filled in. */
export interface FilledResourceMetadataOptions extends ResourceMetadataOptions {
  bearerMethodsSupported: Array<'header' | 'body' | 'query'>
}

/** Named CORS policies, for routes that say cors: a name. */
export interface CorsOptions {
  /** Policies by the names that routes use. */
  policies: Record<string, CorsPolicy>
}

/** Which pages may call. */
export interface CorsPolicy {
  /** Origins of pages, such as https://app.acme.example; '*' alone for any. */
  origins: string[]
  /** Lets pages send cookies too; bearer tokens need no such thing. Not with *. Default `false`. */
  credentials?: boolean
  /** How long a browser may remember the answer to a preflight. Default `10m`. */
  maxAge?: Duration
}

/** CorsOptions with its defaults filled in. */
export interface FilledCorsOptions extends CorsOptions {
  policies: Record<string, FilledCorsPolicy>
}

/** CorsPolicy with its defaults filled in. */
export interface FilledCorsPolicy extends CorsPolicy {
  credentials: boolean
  maxAge: Duration
}

/** Who may use which tools, resources and prompts. */
export interface ToolPolicyOptions {
  /** Policies by name, for rules, for a definition's access and for a route's authorize. */
  policies?: Record<string, Policy>
  /** Glob -> policy: over tool names; with prompt: over prompt names, with resource: over URIs. */
  rules?: Record<string, string | Policy | DetailedRule>
  /** Scope -> the scopes that it includes. */
  scopeHierarchy?: Record<string, string[]>
  /** How a denied call is answered: 401 or 403 with what is needed, or a JSON-RPC error. Default `challenge`. */
  onDenied?: 'challenge' | 'error'
  /** shadow decides and logs without enforcing. Default `enforce`. */
  mode?: 'enforce' | 'shadow'
}

/** Everything written here must hold; what is not written asks nothing. No anonymous caller meets a policy. */
export interface Policy {
  /** All of these scopes. */
  scope?: string | string[]
  /** All of these roles. */
  role?: string | string[]
  /** Each of these claims has the value, or one of the values; of a claim that is a list, one entry does. */
  claim?: Record<string, string | number | boolean | Array<string | number | boolean>>
  /** At least one of these. */
  anyOf?: Policy[]
  /** Each of these. */
  allOf?: Policy[]
}

/** A rule that says more than its policy. */
export interface DetailedRule {
  /** The policy, or its name. */
  policy: string | Policy
  /** Default: the mode of the plugin. */
  mode?: 'enforce' | 'shadow'
  /** 'listed' shows the items to callers who may not use them. Default: as the definition says, else hidden. */
  visibility?: 'listed' | 'hidden'
}

/** ToolPolicyOptions with its defaults filled in. */
export interface FilledToolPolicyOptions extends ToolPolicyOptions {
  onDenied: 'challenge' | 'error'
  mode: 'enforce' | 'shadow'
}

/** Verifies JWT access tokens, and enforces `authorize` of routes. */
export interface AuthJwtOptions {
  /** The issuer's URL, exactly as it names itself; its keys are found by discovery. */
  authority?: string
  /** The exact iss of its tokens. */
  issuer?: string
  /** Where its keys are. */
  jwksUri?: string
  /** Its public keys: JWKs, or PEM texts. */
  keys?: Array<Record<string, unknown> | string>
  /** A secret shared with it, at least 32 characters; for HS algorithms. */
  secret?: string
  /** Who tokens must be for; one of them. Default: the resource of the route. */
  audience?: string | string[]
  /** Where the issuer writes what. A path is a name, or names joined by dots. */
  claims?: JwtClaims
  /** Several issuers, in the place of one; what one does not say of audience and claims is taken from beside. */
  issuers?: IssuerOptions[]
  /** Checks, each on by default; each that is off is a warning at every start. The signature is always checked. */
  validate?: {
    /** The token is of a configured issuer. Default `true`. */
    issuer?: boolean
    /** The token is for this server. Default `true`. */
    audience?: boolean
    /** exp, nbf and iat. Default `true`. */
    lifetime?: boolean
    /** The key is the one that the token names, meant for its algorithm, and long enough. Default `true`. */
    signingKey?: boolean
  }
  /** Accepted algorithms. Default: RS, PS and ES of 256, 384 and 512, or HS where there is a secret. */
  algorithms?: Array<
    | 'RS256'
    | 'RS384'
    | 'RS512'
    | 'PS256'
    | 'PS384'
    | 'PS512'
    | 'ES256'
    | 'ES384'
    | 'ES512'
    | 'HS256'
    | 'HS384'
    | 'HS512'
  >
  /** Long-lived streams go on when the token that opened them expires. Default `false`. */
  streamsOutliveToken?: boolean
  /** How far clocks may differ. Default `60s`. */
  clockTolerance?: Duration
  /** The age at which keys are fetched anew: a withdrawn one is refused no later. Default `5m`. */
  jwksMaxAge?: Duration
  /** How long the last keys serve while the issuer cannot be reached. Default `1h`. */
  jwksMaxStale?: Duration
}

/** Where the issuer writes what. A path is a name, or names joined by dots. */
export interface JwtClaims {
  /** Where the scopes are; all of them count. Text is split at spaces. Default `['scope', 'scp']`. */
  scopes?: string | string[]
  /** Where the roles are; all of them count. Default `roles`. */
  roles?: string | string[]
  /** Where the subject is; the first that is there. Default `sub`. */
  subject?: string | string[]
  /** Where the client's id is; the first that is there. Default `['client_id', 'azp']`. */
  clientId?: string | string[]
  /** Where the audience is; all of them count. Default `aud`. */
  audience?: string | string[]
  /** Claims that must have exactly this value, such as { token_use: 'access' }. */
  required?: Record<string, string>
}

/** One issuer: authority alone, or issuer with one of jwksUri, keys and secret. */
export interface IssuerOptions {
  /** The issuer's URL, exactly as it names itself; its keys are found by discovery. */
  authority?: string
  /** The exact iss of its tokens. */
  issuer?: string
  /** Where its keys are. */
  jwksUri?: string
  /** Its public keys: JWKs, or PEM texts. */
  keys?: Array<Record<string, unknown> | string>
  /** A secret shared with it, at least 32 characters; for HS algorithms. */
  secret?: string
  /** Who tokens must be for; one of them. Default: the resource of the route. */
  audience?: string | string[]
  /** Where the issuer writes what. A path is a name, or names joined by dots. */
  claims?: JwtClaims
}

/** AuthJwtOptions with its defaults filled in. */
export interface FilledAuthJwtOptions extends AuthJwtOptions {
  claims: FilledJwtClaims
  issuers?: FilledIssuerOptions[]
  validate: {
    issuer: boolean
    audience: boolean
    lifetime: boolean
    signingKey: boolean
  }
  streamsOutliveToken: boolean
  clockTolerance: Duration
  jwksMaxAge: Duration
  jwksMaxStale: Duration
}

/** JwtClaims with its defaults filled in. */
export interface FilledJwtClaims extends JwtClaims {
  scopes: string | string[]
  roles: string | string[]
  subject: string | string[]
  clientId: string | string[]
  audience: string | string[]
}

/** IssuerOptions with its defaults filled in. */
export interface FilledIssuerOptions extends IssuerOptions {
  claims?: FilledJwtClaims
}

/** Asks the authorization server about opaque tokens (RFC 7662), and enforces `authorize` of routes. */
export interface AuthIntrospectionOptions {
  /** The authorization server's introspection endpoint. */
  endpoint: string
  /** As which this server asks. */
  clientId: string
  /** Its secret. */
  clientSecret: string
  /** How id and secret are sent: in the Authorization header, or in the body. Default `basic`. */
  clientAuth?: 'basic' | 'post'
  /** The issuer's name: part of who a user is, and compared with iss where the answer has one. Default: the endpoint's origin. */
  issuer?: string
  /** Who tokens must be for; one of them. Default: the resource of the route. */
  audience?: string | string[]
  /** On by default; off is a warning at every start, for servers whose answers name no audience. */
  validate?: {
    /** The token is for this server. Default `true`. */
    audience?: boolean
  }
  /** How long an answer is believed, at most 5m and until the token expires: how long a revoked token lives on; 0 asks each time. Default `30s`. */
  cacheFor?: Duration
  /** Long-lived streams go on when the token that opened them expires. Default `false`. */
  streamsOutliveToken?: boolean
  /** Where the answer says what. A path is a name, or names joined by dots. */
  claims?: ClaimPaths
}

/** Where the answer says what. A path is a name, or names joined by dots. */
export interface ClaimPaths {
  /** Where the scopes are; all of them count. Text is split at spaces. Default `['scope', 'scp']`. */
  scopes?: string | string[]
  /** Where the roles are; all of them count. Default `roles`. */
  roles?: string | string[]
  /** Where the subject is; the first that is there. Default `sub`. */
  subject?: string | string[]
  /** Where the client's id is; the first that is there. Default `['client_id', 'azp']`. */
  clientId?: string | string[]
}

/** AuthIntrospectionOptions with its defaults filled in. */
export interface FilledAuthIntrospectionOptions extends AuthIntrospectionOptions {
  clientAuth: 'basic' | 'post'
  validate: {
    audience: boolean
  }
  cacheFor: Duration
  streamsOutliveToken: boolean
  claims: FilledClaimPaths
}

/** ClaimPaths with its defaults filled in. */
export interface FilledClaimPaths extends ClaimPaths {
  scopes: string | string[]
  roles: string | string[]
  subject: string | string[]
  clientId: string | string[]
}

/** Readiness at a fixed path: 200 when ready, 503 when not. */
export interface HealthOptions {
  /** Where the page is served. Default `/health`. */
  path?: string
}

/** HealthOptions with its defaults filled in. */
export interface FilledHealthOptions extends HealthOptions {
  path: string
}

/** Any node serves any session: change-bus-redis, session-store-redis and event-store-redis in one. */
export interface ClusterRedisOptions {
  /** How long after its last event a stream can be resumed. Default `1h`. */
  ttl?: Duration
  /** Events of one stream; the oldest go first. Default `10000`. */
  maxEvents?: number
  /** Bytes of one stream; its last event is kept whatever its size. Default `4mb`. */
  maxBytes?: Size
  /** Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database. */
  url?: string
  /** The ACL user, where the URL names none. */
  username?: string
  /** Its password, where the URL has none. */
  password?: string
  /** For rediss:// alone. */
  tls?: RedisTls
  /** What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'. */
  keyPrefix?: string
  /** How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'. */
  commandTimeout?: Duration
  /** URLs of some nodes of a Redis Cluster, in the place of `url`. */
  cluster?: string[]
}

/** ClusterRedisOptions with its defaults filled in. */
export interface FilledClusterRedisOptions extends ClusterRedisOptions {
  ttl: Duration
  maxEvents: number
  maxBytes: Size
}

/** Keeps the records of sessions in Redis: any node serves any session. Needs change-bus-redis. */
export interface SessionStoreRedisOptions {
  /** Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database. */
  url?: string
  /** The ACL user, where the URL names none. */
  username?: string
  /** Its password, where the URL has none. */
  password?: string
  /** For rediss:// alone. */
  tls?: RedisTls
  /** What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'. */
  keyPrefix?: string
  /** How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'. */
  commandTimeout?: Duration
  /** URLs of some nodes of a Redis Cluster, in the place of `url`. */
  cluster?: string[]
}

/** Brings changes to every node, and what concerns one node to that node, over Redis. */
export interface ChangeBusRedisOptions {
  /** Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database. */
  url?: string
  /** The ACL user, where the URL names none. */
  username?: string
  /** Its password, where the URL has none. */
  password?: string
  /** For rediss:// alone. */
  tls?: RedisTls
  /** What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'. */
  keyPrefix?: string
  /** How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'. */
  commandTimeout?: Duration
  /** URLs of some nodes of a Redis Cluster, in the place of `url`. */
  cluster?: string[]
}

/** Keeps the events of streams in Redis: clients come back to any node. */
export interface EventStoreRedisOptions {
  /** How long after its last event a stream can be resumed. Default `1h`. */
  ttl?: Duration
  /** Events of one stream; the oldest go first. Default `10000`. */
  maxEvents?: number
  /** Bytes of one stream; its last event is kept whatever its size. Default `4mb`. */
  maxBytes?: Size
  /** Where Redis is: redis://host:6379, or rediss:// for TLS; may name user, password and database. */
  url?: string
  /** The ACL user, where the URL names none. */
  username?: string
  /** Its password, where the URL has none. */
  password?: string
  /** For rediss:// alone. */
  tls?: RedisTls
  /** What every key starts with; hosts that share only a Redis have one each. Default: 'mcp-host:'. */
  keyPrefix?: string
  /** How long Redis may take to answer; then what waits for it is refused, or goes on without. Default: '5s'. */
  commandTimeout?: Duration
  /** URLs of some nodes of a Redis Cluster, in the place of `url`. */
  cluster?: string[]
}

/** EventStoreRedisOptions with its defaults filled in. */
export interface FilledEventStoreRedisOptions extends EventStoreRedisOptions {
  ttl: Duration
  maxEvents: number
  maxBytes: Size
}

/** For development: an authorization server at /dev-auth, on loopback addresses only. */
export interface DevAuthServerOptions {
  /** Tokens are for these. Default: every address of this host. */
  resources?: string[]
  /** A file that keeps keys, clients and logins over a restart. Default: nothing is kept; with mcp-host dev .mcp-host/dev-auth-server.json. */
  keepIn?: string
  /** May be asked for. Default: the metadata documents' scopes. */
  scopes?: string[]
  /** Who can sign in, without a password. Default `[{'id':'dev'}]`. */
  users?: DevUser[]
}

/** Somebody who can sign in, with what their tokens say of them. */
export interface DevUser {
  /** The token's sub. */
  id: string
  /** On the consent page. Default: the id. */
  name?: string
  /** The token's roles. */
  roles?: string[]
  /** Further claims of the token. */
  claims?: Record<string, unknown>
}

/** DevAuthServerOptions with its defaults filled in. */
export interface FilledDevAuthServerOptions extends DevAuthServerOptions {
  users: DevUser[]
}

/** Built-in plugins and their options. */
export interface BuiltInOptions {
  'transport-streamable': TransportStreamableOptions
  'transport-sse': TransportSseOptions
  'transport-stdio': TransportStdioOptions
  'resource-metadata': ResourceMetadataOptions
  cors: CorsOptions
  'tool-policy': ToolPolicyOptions
  'auth-jwt': AuthJwtOptions
  'auth-introspection': AuthIntrospectionOptions
  health: HealthOptions
  'cluster-redis': ClusterRedisOptions
  'session-store-redis': SessionStoreRedisOptions
  'change-bus-redis': ChangeBusRedisOptions
  'event-store-redis': EventStoreRedisOptions
  'dev-auth-server': DevAuthServerOptions
}

/** The same as `setup` gets them: with their defaults. */
export interface FilledOptions {
  'transport-streamable': TransportStreamableOptions
  'transport-sse': TransportSseOptions
  'transport-stdio': FilledTransportStdioOptions
  'resource-metadata': FilledResourceMetadataOptions
  cors: FilledCorsOptions
  'tool-policy': FilledToolPolicyOptions
  'auth-jwt': FilledAuthJwtOptions
  'auth-introspection': FilledAuthIntrospectionOptions
  health: FilledHealthOptions
  'cluster-redis': FilledClusterRedisOptions
  'session-store-redis': SessionStoreRedisOptions
  'change-bus-redis': ChangeBusRedisOptions
  'event-store-redis': FilledEventStoreRedisOptions
  'dev-auth-server': FilledDevAuthServerOptions
}
