// tools/call of a tool of an upstream server, against two bare hops, and of an own tool next to 20 upstream servers.
import { CONFIG_IMPORTS, relayed, startOurs, twoPosts } from '../contestants.ts'
import { callEcho, callEchoApi } from '../requests.ts'
import { type Row, ratio } from '../row.ts'

const SERVERS = 20
const TOOLS = 50

const configText = (toolsets: readonly string[], servers: object) => `${CONFIG_IMPORTS}
const api = process.env.API_URL
const own = { ...toolTexts(1)[0], input: INPUT_SCHEMA }
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

const names = Array.from({ length: SERVERS }, (_, index) => `far${index}`)
const far = Object.fromEntries(names.map(name => [name, { url: `/${TOOLS}` }]))

const PROXIED = 'ours, upstream'
const ALONE = 'ours, own tool alone'
const NEXT_TO = `ours, own tool next to ${SERVERS} upstream servers with ${(SERVERS * TOOLS).toLocaleString('en')} tools`

const start = (file: string, toolsets: readonly string[], servers: object) => (scratch: string) =>
  startOurs(scratch, file, configText(toolsets, servers))

export const row: Row = {
  name: 'tools/call, upstream',
  contestants: [
    twoPosts,
    {
      ...relayed(PROXIED, start('upstream', ['far'], { far: { url: '/1', prefix: '' } }), callEchoApi),
      ours: true,
    },
    { ...relayed(ALONE, start('own-alone', ['own'], {}), callEcho), ours: true },
    { ...relayed(NEXT_TO, start('own-next-to', ['own', ...names], far), callEcho), ours: true },
  ],
  targets: [ratio(PROXIED, twoPosts.name, '<=', 1.5), ratio(NEXT_TO, ALONE, '<=', 1.05)],
  quick: [twoPosts.name, PROXIED],
}
