// `mcp-host/host`: for programs that embed a host (docs/embedding.md).
export { type CreateHostOptions, createHost, loadHost, reloadHost } from './create-host.ts'
export type { Host } from './host.ts'
