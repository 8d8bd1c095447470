// `mcp-host`: the API for configs, tools and plugins. It loads no server; see `mcp-host/host`, `mcp-host/transport` and
// `mcp-host/auth`.
export {
  type BuiltInOptions,
  type Config,
  defineConfig,
  type HttpSettings,
  type RouteSettings,
  type ToolsetSource,
} from './config/define-config.ts'
export type { Clock, Timer } from './http/clock.ts'
export { errorText, HostError, type HostErrorKind, type HostErrorOptions, StartError } from './http/errors.ts'
export type { ResolvedHttp } from './http/http-settings.ts'
export type {
  ConfiguredPlugin,
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
  RequestState,
} from './kernel/endpoint.ts'
export type { Readiness } from './kernel/kernel-host.ts'
export type { Logger } from './kernel/log.ts'
export type { AuthorizeRule, Route } from './kernel/route.ts'
export type { User } from './kernel/user.ts'
export type { Call, Next } from './mcp/call.ts'
export type { CallRecord } from './mcp/call-record.ts'
export type {
  ConfigureSession,
  RunSession,
  ServerSettings,
  SessionOptions,
  SessionRequest,
} from './mcp/configure-session.ts'
export {
  type AskOptions,
  type BuiltInContext,
  type BuiltInToolKeys,
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
  type ToolReturn,
} from './mcp/define.ts'
export type { AddedExtension, Extension, Honoured, ListenFilter } from './mcp/extension.ts'
export type { StandardSchema, Typed, ValueOf } from './mcp/infer.ts'
export { isObject } from './mcp/is-object.ts'
export { didYouMean, nearest } from './mcp/nearest.ts'
export type { Observer } from './mcp/observe.ts'
export type {
  Annotations,
  AudioContent,
  BlobResourceContents,
  CallToolResult,
  ClientCapabilities,
  Completion,
  ContentBlock,
  ElicitParams,
  ElicitResult,
  EmbeddedResource,
  GetPromptResult,
  Icon,
  ImageContent,
  Implementation,
  JsonObject,
  JsonSchema,
  LogLevel,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  ResourceLink,
  Role,
  Root,
  RootsResult,
  SampleParams,
  SampleResult,
  SamplingMessage,
  ServerCapabilities,
  TextContent,
  TextResourceContents,
  ToolAnnotations,
} from './mcp/protocol.ts'
export type { Revision } from './mcp/revisions.ts'
export type { McpRoute } from './mcp/routes.ts'
export type { ToolKey } from './mcp/run-keys.ts'
export { ToolError } from './mcp/tool-error.ts'
export {
  DURATION_PATTERN,
  type Duration,
  parseDuration,
  parseSize,
  SIZE_PATTERN,
  type Size,
} from './mcp/units.ts'
export {
  definePlugin,
  type OptionsOf,
  type Plugin,
  type PluginHost,
  type Services,
} from './plugin-host.ts'
export type { Slots } from './slots.ts'
