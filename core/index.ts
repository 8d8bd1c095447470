// The kernel's public surface: all that configs, tools and plugins import. It loads no server;
// that is `mcp-host/host` (core/create-host.ts), for those who embed one.

export {
  type Call,
  type CallRequest,
  type ClientFacts,
  isObject,
  type Next,
  type OpenSession,
  type RequestFacts,
} from './call.ts'
export type { ItemKind } from './catalog.ts'
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
  type User,
} from './define.ts'
export {
  type Config,
  type ConfigureSession,
  type Duration,
  defineConfig,
  type HttpSettings,
  type PluginsSettings,
  type ResolvedHttp,
  type RouteSettings,
  type RunSession,
  type ServerSettings,
  type SessionOptions,
  type SessionRequest,
  type Size,
  type ToolsetSource,
} from './define-config.ts'
export {
  type AuthorizeRule,
  type ConfiguredPlugin,
  definePlugin,
  type Endpoint,
  type HostContext,
  type HostMiddleware,
  type OptionsSchema,
  type Plugin,
  type PluginFactory,
  type PluginHost,
  type RequestState,
  type Route,
} from './define-plugin.ts'
export { ERROR_KINDS, HostError, type HostErrorKind, type HostErrorOptions, StartError } from './errors.ts'
export { checkHeaderParams, decodeHeaderValue, type HeaderParam } from './header-params.ts'
export type { FromJsonSchema, StandardResult, StandardSchema, ValueOf } from './infer.ts'
export type { Logger } from './log.ts'
export { type Message, readMessages } from './message.ts'
export { findResource } from './methods/resources.ts'
export * from './protocol.ts'
export { readBody } from './read-body.ts'
export {
  type Announcement,
  type ChangeFeed,
  MAX_WATCHED,
  type Subscriber,
  type Subscription,
} from './sessions/change-feed.ts'
export type { EventStore, StoredEvent, StoredEvents } from './sessions/event-store.ts'
export type { Caller, SessionRegistry } from './sessions/registry.ts'
export { parseEventId, type ResumableStream } from './sessions/resumable-stream.ts'
export { type SessionReply, serveSessionMessage } from './sessions/serve.ts'
export type { Session, SessionChannel } from './sessions/session.ts'
export type { Change, ChangeBus, Slots } from './slots.ts'
export { type EventStream, openEventStream, RETRY, whenClosed } from './sse.ts'
export type { View } from './view.ts'
export { encodeAnswer, encodeError, encodeNotification } from './wire.ts'
