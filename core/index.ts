// The kernel's public surface: all that configs, tools and plugins import. It loads no server;
// that is `mcp-host/host` (core/create-host.ts), for those who embed one.

export {
  type ChallengeFacts,
  challenge,
  meetsRule,
  refuseAccess,
} from './access/access.ts'
export { authorizeRoute } from './access/authorize-route.ts'
export { fetchJson, type JsonReply } from './access/fetch-json.ts'
export {
  identifyBearer,
  needResource,
  sameResources,
  type TokenPlace,
  type TokenVerdict,
  type VerifyToken,
} from './access/identify-bearer.ts'
export { whenTokenExpires } from './access/token-expiry.ts'
export {
  CLAIM_PATHS_SCHEMA,
  type ClaimPaths,
  type Claims,
  claimAt,
  readUser,
  STREAMS_OUTLIVE_TOKEN_SCHEMA,
  type StreamOptions,
  stringsAt,
} from './access/user-claims.ts'
export {
  type BuiltInOptions,
  type Config,
  type Duration,
  defineConfig,
  type FilledOptions,
  type HttpSettings,
  type PluginsSettings,
  type RoutePluginsSettings,
  type RouteSettings,
  type Size,
  type ToolsetSource,
} from './config/define-config.ts'
export { ENDPOINT_URL_PATTERN } from './config/host-schema.ts'
export {
  ERROR_KINDS,
  errorText,
  HostError,
  type HostErrorKind,
  type HostErrorOptions,
  isUnavailable,
  nodeLost,
  StartError,
  shuttingDown,
  statusOf,
} from './http/errors.ts'
export type { ResolvedHttp } from './http/http-settings.ts'
export { readBody } from './http/read-body.ts'
export { shownUrl } from './http/shown-url.ts'
export { type EventStream, openEventStream, RETRY, whenClosed } from './http/sse.ts'
export type {
  ConfiguredPlugin,
  OptionsSchema,
  PluginFactory,
  SectionReader,
  SectionSchemas,
} from './kernel/define-plugin.ts'
export type {
  CrossOrigin,
  Endpoint,
  EndpointPlace,
  HostContext,
  HostMiddleware,
  MountedApp,
  MountSettings,
  RequestState,
} from './kernel/endpoint.ts'
export { isLoopback } from './kernel/guard.ts'
export type { Readiness } from './kernel/kernel-host.ts'
export type { Logger } from './kernel/log.ts'
export { publicKeyIn } from './kernel/public-key.ts'
export type { AuthorizeRule, Route } from './kernel/route.ts'
export type { User } from './kernel/user.ts'
export type { AccessDecider, Audience, Denial, ProtectedResource } from './mcp/access-decider.ts'
export type {
  AskClient,
  Call,
  CallChannel,
  CallRequest,
  ClientFacts,
  LiveSession,
  Next,
  OpenSession,
  RequestFacts,
} from './mcp/call.ts'
export type { CatalogItem, ItemKind } from './mcp/catalog.ts'
export type { Change, ChangeBus, ChangeHistory } from './mcp/change-bus.ts'
export { checkUri, fits, shown, sizeFault } from './mcp/client-said.ts'
export type {
  ConfigureSession,
  RunSession,
  ServerSettings,
  SessionOptions,
  SessionRequest,
} from './mcp/configure-session.ts'
export {
  type AskOptions,
  type CallContext,
  type Completer,
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type PromptArgument,
  type PromptDefinition,
  type ResourceDefinition,
  type ResourceReturn,
  type RuntimeHost,
  type RuntimeItems,
  type ToolDefinition,
  ToolError,
  type ToolReturn,
} from './mcp/define.ts'
export { encodeAnswer } from './mcp/encode-answer.ts'
export type { AddedExtension, Extension, Honoured, ListenFilter, RouteExtensions } from './mcp/extension.ts'
export type { FromJsonSchema, StandardResult, StandardSchema, ValueOf } from './mcp/infer.ts'
export { isObject } from './mcp/is-object.ts'
export {
  LARGE_ANSWER,
  MAX_LISTENS_PER_CALLER,
  MAX_OPEN_GETS,
  MAX_WATCHED,
  MAX_WATCHED_BYTES,
  MAX_WATCHED_BYTES_PER_OWNER,
  WATCH_COST,
} from './mcp/limits.ts'
export { demandBatches, type Message, readMessages, type ValidMessage, validBatch } from './mcp/message.ts'
export { clientInfoProblem } from './mcp/methods/params.ts'
export { findResource, mayHear } from './mcp/methods/resources.ts'
export { nearest } from './mcp/nearest.ts'
export type { CallRecord, Observer } from './mcp/observe.ts'
export * from './mcp/protocol.ts'
export {
  ASSUMED_REVISION,
  HANDSHAKE_REVISIONS,
  isHandshakeRevision,
  isModernRevision,
  isRevision,
  LATEST_HANDSHAKE,
  MODERN_REVISION,
  REVISIONS,
  type Revision,
  type RevisionRules,
  rulesOf,
} from './mcp/revisions.ts'
export type { McpRoute } from './mcp/routes.ts'
export { checkHeaderParams, decodeHeaderValue, type HeaderParam } from './mcp/schema/header-params.ts'
export { DURATION_PATTERN, parseDuration, parseSize, SIZE_PATTERN } from './mcp/units.ts'
export type { View } from './mcp/view.ts'
export { encodeError, encodeNotification } from './mcp/wire.ts'
export {
  definePlugin,
  type Plugin,
  type PluginHost,
  type Services,
  type Transport,
  transportOf,
} from './plugin-host.ts'
export { type Caller, holderOf } from './sessions/callers.ts'
export type {
  Announcement,
  ChangeFeed,
  Subscriber,
  Subscription,
} from './sessions/change-feed.ts'
export { parseEventId } from './sessions/event-id.ts'
export {
  type EventStore,
  type SharedStreams,
  type StoredEvent,
  type StoredEvents,
  StreamFenced,
  type StreamState,
  type StreamWriter,
} from './sessions/event-store.ts'
export { heardBy } from './sessions/heard-by.ts'
export type { PeerMessage, Peers } from './sessions/peers.ts'
export type { SessionRegistry } from './sessions/registry.ts'
export type { ResumableStream } from './sessions/resumable-stream.ts'
export { type SessionReply, secondHandshake, serveSessionMessage, stopRequest } from './sessions/serve.ts'
export type { Session, SessionChannel } from './sessions/session.ts'
export type { SessionBounds } from './sessions/session-bounds.ts'
export type { SessionOpening, SessionRecord, SessionState, StateChange } from './sessions/session-record.ts'
export type * from './sessions/session-store.ts'
export type { ForwardedMessage, SessionStreams } from './sessions/session-streams.ts'
export type { Resumption } from './sessions/stream-parts.ts'
export { createWatchCharges, watchCost, watchedCost } from './sessions/watched-uris.ts'
export type { Slots } from './slots.ts'
