// `mcp-host`: the API for configs and tools. It loads no server; see `mcp-host/host`.
export { type Config, defineConfig, type RouteSettings, type ToolsetSource } from './config/define-config.ts'
export { HostError, StartError } from './http/errors.ts'
export type { User } from './kernel/user.ts'
export {
  type CallContext,
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type PromptDefinition,
  type ResourceDefinition,
  type RuntimeHost,
  type RuntimeItems,
  type ToolDefinition,
  type ToolReturn,
} from './mcp/definitions/define.ts'
export type { StandardSchema, Typed } from './mcp/definitions/infer.ts'
export { ToolError } from './mcp/definitions/tool-error.ts'
export type { ConfigureSession, RunSession } from './mcp/routes/configure-session.ts'
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
} from './mcp/wire/protocol.ts'
export { definePlugin, type PluginFactory, withPlugins } from './plugin-host.ts'
