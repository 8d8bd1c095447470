// The config of the conformance host: one route with every fixture of the server scenarios, for 2026-07-28 and the
// protocol versions with sessions. With REDIS_URL it is one of several nodes, with STORE_FILE it uses a file.
import { defineConfig } from 'mcp-host'
import { inputRequiredTools } from './input-required.ts'
import { prompts } from './prompts.ts'
import { resources } from './resources.ts'
import { tools } from './tools.ts'

const { REDIS_URL: url, STORE_FILE: file } = process.env

export default defineConfig({
  server: { name: 'mcp-host-conformance', version: '1.0.0' },
  http: { port: Number(process.env['PORT'] ?? 0) },
  toolsets: { tools, inputRequired: inputRequiredTools, resources, prompts },
  routes: { '/mcp': { toolsets: ['tools', 'inputRequired', 'resources', 'prompts'] } },
  plugins: {
    'transport-streamable': {},
    ...(url !== undefined && { 'cluster-redis': { url } }),
    ...(file !== undefined && { 'store-sqlite': { file } }),
  },
})
