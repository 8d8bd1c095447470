// For built-in plugins only: what package.json does not export.
export type { ResolvedHttp } from './http/http-settings.ts'
export type { CrossOrigin } from './kernel/endpoint.ts'
export type { BuiltInContext } from './mcp/define.ts'
export { didYouMean, nearest } from './mcp/nearest.ts'
export { definePlugin, type PluginHost, type Services } from './plugin-host.ts'
export type { Slots } from './slots.ts'
