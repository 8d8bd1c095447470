// `mcp-host/host`: for programs that embed a host (docs/embedding.md).
export { createHost, loadHost, reloadHost } from './create-host.ts'
export type { CreateHostOptions, Host } from './host.ts'
