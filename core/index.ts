// `mcp-host`: the API for configs, tools and plugins. It loads no server; see `mcp-host/host`, `mcp-host/transport` and
// `mcp-host/auth`.
export { type Config, defineConfig, type RouteSettings, type ToolsetSource } from './config/define-config.ts'
export type { Clock, Timer } from './http/clock.ts'
export { errorText, HostError, StartError } from './http/errors.ts'
export type { ResolvedHttp } from './http/http-settings.ts'
export type { ConfiguredPlugin, SectionReader, SectionSchemas } from './kernel/define-plugin.ts'
export type { CrossOrigin, Endpoint, HostContext, HostMiddleware } from './kernel/endpoint.ts'
export type { Logger } from './kernel/log.ts'
export type { AuthorizeRule, Route } from './kernel/route.ts'
export type { User } from './kernel/user.ts'
export type { Call, Next } from './mcp/call.ts'
export type { CallRecord } from './mcp/call-record.ts'
export type { ConfigureSession, RunSession } from './mcp/configure-session.ts'
export {
  type AppDefinition,
  type CallContext,
  type Definition,
  defineApp,
  definePrompt,
  defineResource,
  defineTool,
  type PromptDefinition,
  type ResourceDefinition,
  type RuntimeHost,
  type RuntimeItems,
  type ToolDefinition,
  type ToolReturn,
} from './mcp/define.ts'
export type { AddedExtension, Extension, Honoured } from './mcp/extension.ts'
export type { StandardSchema, Typed } from './mcp/infer.ts'
export { isObject } from './mcp/is-object.ts'
export { didYouMean, nearest } from './mcp/nearest.ts'
export type { Observer } from './mcp/observe.ts'
export type {
  CallToolResult,
  ContentBlock,
  ElicitParams,
  ElicitResult,
  GetPromptResult,
  Implementation,
  JsonObject,
  JsonSchema,
  LogLevel,
  Meta,
  PromptMessage,
  ReadResourceResult,
  ResourceContents,
  SampleParams,
  SampleResult,
} from './mcp/protocol.ts'
export type { Revision } from './mcp/revisions.ts'
export type { McpRoute } from './mcp/routes.ts'
export type { ToolKey } from './mcp/run-keys.ts'
export { ToolError } from './mcp/tool-error.ts'
export { DURATION_PATTERN, type Duration, parseDuration, parseSize, SIZE_PATTERN, type Size } from './mcp/units.ts'
export { definePlugin, type OptionsOf, type Plugin, type PluginHost, type Services } from './plugin-host.ts'
export type { Slots } from './slots.ts'
