// The servers that rows compare. Each runs in a separate Node.js process with NODE_ENV=production.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BenchRequest, callEchoApi } from './requests.ts'
import type { Contestant } from './row.ts'

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** `'1 tool'`, `'1,000 tools'`. */
export const formatToolCount = (tools: number) => `${tools.toLocaleString('en')} tool${tools === 1 ? '' : 's'}`

/** A server script of bench/servers. */
export const serverScript = (
  name: string,
  file: string,
  args: readonly unknown[],
  request: BenchRequest,
): Contestant => ({
  name,
  command: () => [fileAt(`servers/${file}`), ...args.map(String)],
  request: () => request,
})

/** Import statements of host configs: the compiled package and the common tools. */
export const CONFIG_IMPORTS = `
import { defineResource, defineTool } from ${JSON.stringify(new URL('../dist/core/index.js', import.meta.url).href)}
import { INPUT_SCHEMA, SERVER_INFO, makeTools } from ${JSON.stringify(new URL('servers/tools.mjs', import.meta.url).href)}
`

const createConfig = (tools: number, options: object) => `${CONFIG_IMPORTS}
const echoes = makeTools(${tools}).map(tool =>
  defineTool({ ...tool, input: INPUT_SCHEMA, handler: ({ message }) => message }),
)

export default {
  server: SERVER_INFO,
  http: { port: Number(process.env.PORT ?? 0) },
  ...(process.env.REDIS_URL && { redis: { url: process.env.REDIS_URL } }),
  toolsets: { echoes },
  routes: { '/mcp': { toolsets: ['echoes'] } },
  plugins: { 'transport-streamable': {} },
  ...${JSON.stringify(options)},
}
`

/** Writes a config file and returns the arguments of node that start mcp-host with it. */
export function hostCommand(scratch: string, file: string, config: string, args: readonly string[] = []): string[] {
  const path = join(scratch, `${file}.config.mjs`)
  writeFileSync(path, config)
  return [fileAt('../dist/cli/bin.js'), 'start', '--config', path, ...args]
}

/** mcp-host with this config text. */
export const mcpHostWith = (name: string, file: string, config: string, request: BenchRequest): Contestant => ({
  name,
  command: scratch => hostCommand(scratch, file, config),
  request: () => request,
})

/** mcp-host with copies of the `echo` tool. `options` are added to its config. */
export const mcpHost = (tools: number, request: BenchRequest, options: object = {}, file = 'mcp'): Contestant => ({
  name: `ours, ${formatToolCount(tools)}`,
  command: scratch => hostCommand(scratch, `${file}-${tools}`, createConfig(tools, options)),
  request: () => request,
})

/** Starts the echo API together with the server. The cost of the API is not counted. */
export const withEchoApi = (
  name: string,
  command: (scratch: string) => readonly string[],
  request: BenchRequest = callEchoApi,
): Contestant => ({
  name,
  command: scratch => [fileAt('servers/with-api.mjs'), ...command(scratch)],
  request: () => request,
  isCounted: commandLine => !/with-api\.mjs|echo-api\.mjs/.test(commandLine),
})

/** A minimal node:http server that calls the echo API: the baseline for calls of an HTTP API. */
export const relay = withEchoApi('node:http relay', () => [fileAt('servers/node-http-relay.mjs')])

/** Forwards the request to the echo API by POST: the baseline for calls of an upstream MCP server. */
export const postRelay = withEchoApi('node:http relay with POST', () => [fileAt('servers/node-http-relay.mjs'), 'post'])

const CLUSTER = { plugins: { 'transport-streamable': {}, 'cluster-redis': {} } }

/** mcp-host nodes that share a Redis, behind nginx if there are several. The cost includes Redis and nginx. */
export const cluster = (nodes: number, request: BenchRequest): Contestant => {
  const node = mcpHost(1, request, CLUSTER, 'cluster')
  return {
    ...node,
    name: nodes === 1 ? 'ours on Redis, 1 node' : `ours on Redis, ${nodes} nodes, nginx`,
    command: scratch => ['--import', 'tsx', fileAt('servers/cluster.ts'), String(nodes), ...node.command(scratch)],
  }
}

/** A single node. The cost does not include Redis. */
export const nodeOnRedis = (request: BenchRequest): Contestant => ({
  ...cluster(1, request),
  name: 'ours on Redis, without the Redis process',
  isCounted: commandLine => commandLine.includes('dist/cli/bin.js') && !commandLine.includes('cluster.ts'),
})

export const sdkServer = (tools: number, request: BenchRequest): Contestant =>
  serverScript(`SDK server 2.4.0, ${formatToolCount(tools)}`, 'sdk-server.mjs', [tools], request)

/** tmcp with the node:http adapter from its README. */
export const tmcp = (tools: number, request: BenchRequest): Contestant =>
  serverScript(`tmcp 1.20, ${formatToolCount(tools)}`, 'tmcp.mjs', [tools], request)

/** tmcp with the fastest known adapter, which reduces its cost by a third. */
export const tmcpOnHono = (tools: number, request: BenchRequest): Contestant =>
  serverScript(`tmcp 1.20 on Hono, ${formatToolCount(tools)}`, 'tmcp.mjs', [tools, 'hono'], request)

export const mcpHandler = (tools: number, request: BenchRequest): Contestant =>
  serverScript(`mcp-handler 2.4, ${formatToolCount(tools)}`, 'mcp-handler.mjs', [tools], request)

/** Supports 2025-11-25 and older versions. */
export const fastmcp = (kind: 'sessions' | 'stateless', request: BenchRequest): Contestant =>
  serverScript(`fastmcp 4.20, ${kind}`, 'fastmcp.mjs', [kind], request)

/** Supports 2025-11-25 and older versions. */
export const platformatic = (kind: 'sessions' | 'stateless', request: BenchRequest): Contestant => ({
  ...serverScript(`@platformatic/mcp, ${kind}`, 'platformatic.mjs', [kind], request),
  requiredPackage: '@platformatic/mcp',
})
