// The config of the task scenarios: a route whose tools run as tasks, started by run.ts. With REDIS_URL it is one of
// several nodes, with STORE_FILE it uses a file.
import { defineConfig } from 'mcp-host'
import { taskTools } from './task-tools.ts'

const { REDIS_URL: url, STORE_FILE: file } = process.env

export default defineConfig({
  server: { name: 'mcp-host-conformance', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  toolsets: { taskTools },
  routes: { '/mcp': { toolsets: 'taskTools' } },
  plugins: {
    'transport-streamable': {},
    // The suite leaves many of a minute behind.
    tasks: { perUser: 50, pollInterval: '200ms' },
    ...(url !== undefined && { 'cluster-redis': { url } }),
    ...(file !== undefined && { 'store-sqlite': { file } }),
  },
})
