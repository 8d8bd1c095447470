// `mcp-host`: the API for configs and tools. It loads no server; see `mcp-host/host`.
export {
  type BuiltInOptions,
  type Config,
  defineConfig,
  type HttpSettings,
  type RouteSettings,
  type ToolsetSource,
} from './config/define-config.ts'
export { HostError, type HostErrorKind, type HostErrorOptions, StartError } from './http/errors.ts'
export type { User } from './kernel/user.ts'
export type {
  ConfigureSession,
  RunSession,
  ServerSettings,
  SessionOptions,
  SessionRequest,
} from './mcp/configure-session.ts'
export {
  type AppDefinition,
  type AskOptions,
  type CallContext,
  type Completer,
  type Definition,
  defineApp,
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
export type { StandardSchema, Typed, ValueOf } from './mcp/infer.ts'
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
export { ToolError } from './mcp/tool-error.ts'
export { definePlugin } from './plugin-host.ts'
