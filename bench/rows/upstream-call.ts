// Compares a tools/call of an upstream tool to a node:http relay, and an own tool with and without 20 upstream servers.
import { CONFIG_IMPORTS, hostCommand, postRelay, withEchoApi } from '../contestants.ts'
import { callEcho, callEchoApi } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const SERVERS = 20
const TOOLS = 50

const createConfig = (toolsets: readonly string[], servers: object) => `${CONFIG_IMPORTS}
const api = process.env.API_URL
const own = { ...makeTools(1)[0], input: INPUT_SCHEMA }
const servers = ${JSON.stringify(servers)}
for (const server of Object.values(servers)) server.url = api + server.url

export default {
  server: SERVER_INFO,
  http: { port: Number(process.env.PORT ?? 0) },
  toolsets: { own: [defineTool({ ...own, handler: ({ message }) => message })] },
  routes: { '/mcp': { toolsets: ${JSON.stringify(toolsets)} } },
  plugins: { 'transport-streamable': {}, ...(Object.keys(servers).length > 0 && { upstream: { servers } }) },
}
`

const names = Array.from({ length: SERVERS }, (_, index) => `upstream${index}`)
const upstreams = Object.fromEntries(names.map(name => [name, { url: `/${TOOLS}` }]))

const PROXIED = 'ours, upstream'
const OWN_TOOL = 'ours, own tool only'
const WITH_UPSTREAMS = `ours, own tool next to ${SERVERS} upstream servers with ${(SERVERS * TOOLS).toLocaleString('en')} tools`

const createCommand = (file: string, toolsets: readonly string[], servers: object) => (scratch: string) =>
  hostCommand(scratch, file, createConfig(toolsets, servers))

export const row: Row = {
  name: 'tools/call, upstream',
  contestants: [
    postRelay,
    withEchoApi(PROXIED, createCommand('upstream', ['api'], { api: { url: '/1', prefix: '' } }), callEchoApi),
    withEchoApi(OWN_TOOL, createCommand('own-tool', ['own'], {}), callEcho),
    withEchoApi(WITH_UPSTREAMS, createCommand('with-upstreams', ['own', ...names], upstreams), callEcho),
  ],
  targets: [ratio(PROXIED, postRelay.name, '<=', 1.5), ratio(WITH_UPSTREAMS, OWN_TOOL, '<=', 1.05)],
  quick: [postRelay.name, PROXIED],
}
