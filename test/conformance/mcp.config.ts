// The config that the official conformance suite is run against: one route that serves every fixture its server
// scenarios ask for, in 2026-07-28 and in the revisions with sessions. Started by run.ts like any operator's config; with
// REDIS_URL as one node of several, with STORE_FILE on a file.
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
