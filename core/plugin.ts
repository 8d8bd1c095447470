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
export type { Call, Next } from './mcp/calls/call.ts'
export type { CallRecord } from './mcp/calls/call-record.ts'
export type { Observer } from './mcp/calls/observe.ts'
export type { ToolKey } from './mcp/calls/tool-key-handlers.ts'
export type { CatalogItem } from './mcp/definitions/catalog.ts'
export type { ServedToolset } from './mcp/definitions/provided-toolsets.ts'
export type { AccessDecider, Audience, Denial } from './mcp/routes/access-decider.ts'
export type { AddedExtension, Extension, Honoured } from './mcp/routes/extensions.ts'
export type { McpRoute } from './mcp/routes/routes.ts'
export { uncheckedSchema } from './mcp/schema/schema.ts'
export { DURATION_PATTERN, type Duration, parseDuration, parseSize, SIZE_PATTERN, type Size } from './mcp/units.ts'
export { isObject } from './mcp/wire/message.ts'
export type { Revision } from './mcp/wire/revisions.ts'
export { definePlugin, type OptionsOf, type Plugin, type PluginFactory, type PluginHost } from './plugin-host.ts'
export type { ClientLine, ConnectedClient, LineCaller } from './sessions/connect-client.ts'
