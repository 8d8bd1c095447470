// A host of ours for measures of streams: `echo`, a resource, and a tool that tells all who subscribed to it of a change.
import { CONFIG_IMPORTS, startOurs } from './contestants.ts'
import { NEWS } from './requests.ts'

const CONFIG = `${CONFIG_IMPORTS}
const echo = defineTool({ ...toolTexts(1)[0], input: INPUT_SCHEMA, handler: ({ message }) => message })
const news = defineResource({ name: 'news', uri: ${JSON.stringify(NEWS)}, handler: () => 'no news' })
const tell = defineTool({
  name: 'tell',
  description: 'Tells listeners that the news changed.',
  handler(_, { host }) {
    host.resourceUpdated(${JSON.stringify(NEWS)})
    return 'told'
  },
})

export default {
  server: SERVER_INFO,
  http: { port: 0 },
  toolsets: { all: [echo, news, tell] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {} },
}
`

export const startToldHost = (scratch: string) => startOurs(scratch, 'told', CONFIG)
