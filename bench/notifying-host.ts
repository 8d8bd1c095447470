// mcp-host with a resource and a tool that notifies its subscribers.
import { CONFIG_IMPORTS, hostCommand } from './contestants.ts'
import { RESOURCE_URI } from './requests.ts'

const CONFIG = `${CONFIG_IMPORTS}
const echo = defineTool({ ...makeTools(1)[0], input: INPUT_SCHEMA, handler: ({ message }) => message })
const resource = defineResource({ name: 'resource', uri: ${JSON.stringify(RESOURCE_URI)}, handler: () => 'unchanged' })
const notify = defineTool({
  name: 'notify',
  description: 'Notifies subscribers that the resource was updated.',
  handler(_, { host }) {
    host.resourceUpdated(${JSON.stringify(RESOURCE_URI)})
    return 'notified'
  },
})

export default {
  server: SERVER_INFO,
  http: { port: 0 },
  toolsets: { all: [echo, resource, notify] },
  routes: { '/mcp': { toolsets: ['all'] } },
  plugins: { 'transport-streamable': {} },
}
`

export const notifyingHostCommand = (scratch: string) => hostCommand(scratch, 'notifying', CONFIG)
