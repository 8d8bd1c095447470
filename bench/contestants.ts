// The servers that rows choose from. Each is a process of its own, run by plain node in NODE_ENV=production.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type BenchRequest, callEchoApi } from './requests.ts'
import type { Contestant } from './row.ts'

const fileAt = (path: string) => fileURLToPath(new URL(path, import.meta.url))

/** `'1 tool'`, `'1,000 tools'`. */
export const countTools = (tools: number) => `${tools.toLocaleString('en')} tool${tools === 1 ? '' : 's'}`

/** A server of bench/servers. */
export const peer = (name: string, file: string, args: readonly unknown[], request: BenchRequest): Contestant => ({
  name,
  command: () => [fileAt(`servers/${file}`), ...args.map(String)],
  request: () => request,
})

/** Where a config finds our compiled package, and what all servers serve. */
export const CONFIG_IMPORTS = `
import { defineResource, defineTool } from ${JSON.stringify(new URL('../dist/core/index.js', import.meta.url).href)}
import { INPUT_SCHEMA, SERVER_INFO, toolTexts } from ${JSON.stringify(new URL('servers/tools.mjs', import.meta.url).href)}
`

const configText = (tools: number, more: object) => `${CONFIG_IMPORTS}
const echoes = toolTexts(${tools}).map(text =>
  defineTool({ ...text, input: INPUT_SCHEMA, handler: ({ message }) => message }),
)

export default {
  server: SERVER_INFO,
  http: { port: Number(process.env.PORT ?? 0) },
  ...(process.env.REDIS_URL && { redis: { url: process.env.REDIS_URL } }),
  toolsets: { echoes },
  routes: { '/mcp': { toolsets: ['echoes'] } },
  plugins: { 'transport-streamable': {} },
  ...${JSON.stringify(more)},
}
`

/** Writes a config of ours and returns what node runs to serve it. */
export function startOurs(scratch: string, file: string, text: string, args: readonly string[] = []): string[] {
  const config = join(scratch, `${file}.config.mjs`)
  writeFileSync(config, text)
  return [fileAt('../dist/cli/bin.js'), 'start', '--config', config, ...args]
}

/** Our compiled package with a config of its own. */
export const oursWith = (name: string, file: string, text: string, request: BenchRequest): Contestant => ({
  name,
  ours: true,
  command: scratch => startOurs(scratch, file, text),
  request: () => request,
})

/** Our compiled package, started as an operator starts it; `more` is added to its config. */
export const ours = (tools: number, request: BenchRequest, more: object = {}, file = 'mcp'): Contestant => ({
  name: `ours, ${countTools(tools)}`,
  ours: true,
  command: scratch => startOurs(scratch, `${file}-${tools}`, configText(tools, more)),
  request: () => request,
})

/** Starts the server of relayed calls next to the server. Only the server counts. */
export const relayed = (
  name: string,
  command: (scratch: string) => readonly string[],
  request: BenchRequest = callEchoApi,
): Contestant => ({
  name,
  command: scratch => [fileAt('servers/with-api.mjs'), ...command(scratch)],
  request: () => request,
  counts: commandLine => !/with-api\.mjs|echo-api\.mjs/.test(commandLine),
})

/** Two bare hops: a server of node:http that calls the API itself. */
export const twoHops = relayed('node:http, two hops', () => [fileAt('servers/node-http-relay.mjs')])

/** The same, with a POST of the whole message to the API: what a proxied MCP call is at least. */
export const twoPosts = relayed('node:http, two hops with POST', () => [fileAt('servers/node-http-relay.mjs'), 'post'])

const CLUSTER = { plugins: { 'transport-streamable': {}, 'cluster-redis': {} } }

/** Our package as nodes that share a Redis, behind nginx where they are several. All processes count, Redis and nginx too. */
export const cluster = (nodes: number, request: BenchRequest): Contestant => {
  const one = ours(1, request, CLUSTER, 'cluster')
  return {
    ...one,
    name: nodes === 1 ? 'ours on Redis, 1 node' : `ours on Redis, ${nodes} nodes, nginx`,
    command: scratch => ['--import', 'tsx', fileAt('servers/cluster.ts'), String(nodes), ...one.command(scratch)],
  }
}

/** The same single node, of which Redis does not count: what sharing costs the node itself. */
export const nodeOnRedis = (request: BenchRequest): Contestant => ({
  ...cluster(1, request),
  name: 'ours on Redis, the node alone',
  counts: commandLine => commandLine.includes('dist/cli/bin.js') && !commandLine.includes('cluster.ts'),
})

export const sdkServer = (tools: number, request: BenchRequest): Contestant =>
  peer(`SDK server 2.4.0, ${countTools(tools)}`, 'sdk-server.mjs', [tools], request)

/** tmcp behind the adapter from node:http that its README names. */
export const tmcp = (tools: number, request: BenchRequest): Contestant =>
  peer(`tmcp 1.20, ${countTools(tools)}`, 'tmcp.mjs', [tools], request)

/** tmcp behind the fastest adapter found, which takes a third off its cost: the harder comparison. */
export const tmcpOnHono = (tools: number, request: BenchRequest): Contestant =>
  peer(`tmcp 1.20 on Hono, ${countTools(tools)}`, 'tmcp.mjs', [tools, 'hono'], request)

/** Vercel's wrapper of the official server. */
export const mcpHandler = (tools: number, request: BenchRequest): Contestant =>
  peer(`mcp-handler 2.4, ${countTools(tools)}`, 'mcp-handler.mjs', [tools], request)

/** fastmcp speaks 2025-11-25 and older. */
export const fastmcp = (kind: 'sessions' | 'stateless', request: BenchRequest): Contestant =>
  peer(`fastmcp 4.20, ${kind}`, 'fastmcp.mjs', [kind], request)

/** @platformatic/mcp speaks 2025-11-25 and older. Its sessions come with SSE. */
export const platformatic = (kind: 'sessions' | 'stateless', request: BenchRequest): Contestant => ({
  ...peer(`@platformatic/mcp, ${kind}`, 'platformatic.mjs', [kind], request),
  needs: '@platformatic/mcp',
})
