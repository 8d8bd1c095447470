// `mcp-host/redis`: for plugins that read the config section `redis` (docs/plugins.md).
export { REDIS_SECTIONS, type RedisSections } from './schema.ts'
