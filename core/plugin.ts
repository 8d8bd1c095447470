// `mcp-host/plugin`: the API for plugins (docs/plugins.md).
export { authorizeRoute } from './access/authorize.ts'
export { authenticateBearer, type TokenPlace, type TokenVerdict, type VerifyToken } from './access/bearer.ts'
export {
  CLAIM_PATHS_SCHEMA,
  type ClaimPaths,
  type Claims,
  makeClaims,
  readUser,
  type UnderTest,
} from './access/claims.ts'
export type { Examination, PluginFinding } from './config/examination.ts'
export type { Clock, Timer } from './http/clock.ts'
export { errorText, HostError, StartError } from './http/errors.ts'
export type { ConfiguredPlugin, SectionReader, SectionSchemas } from './kernel/define-plugin.ts'
export type { Endpoint, HostContext, HostMiddleware } from './kernel/endpoint.ts'
export type { Logger } from './kernel/log.ts'
export type { AuthorizeRule, Route } from './kernel/route.ts'
export type { AccessDecider, Audience, Denial } from './mcp/access-decider.ts'
export type { Call, Next } from './mcp/call.ts'
export type { CallRecord } from './mcp/call-record.ts'
export type { CatalogItem } from './mcp/catalog.ts'
export type { AddedExtension, Extension, Honoured } from './mcp/extension.ts'
export { isObject } from './mcp/message.ts'
export type { Observer } from './mcp/observe.ts'
export type { ServedToolset } from './mcp/provided.ts'
export type { Revision } from './mcp/revisions.ts'
export type { McpRoute } from './mcp/routes.ts'
export { uncheckedSchema } from './mcp/schema/schema.ts'
export type { ToolKey } from './mcp/tool-key-handlers.ts'
export { DURATION_PATTERN, type Duration, parseDuration, parseSize, SIZE_PATTERN, type Size } from './mcp/units.ts'
export { definePlugin, type OptionsOf, type Plugin, type PluginFactory, type PluginHost } from './plugin-host.ts'
export type { ClientLine, ConnectedClient, LineCaller } from './sessions/connect-client.ts'
