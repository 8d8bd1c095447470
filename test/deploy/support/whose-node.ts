// A node that appends the user of each call to a file before it responds, by header and by arguments. Arguments: its
// port and the file.
import { appendFileSync } from 'node:fs'
import { createHost } from '../../../core/create-host.ts'
import { defineTool } from '../../../core/index.ts'
import type { Logger } from '../../../core/plugin.ts'

const [, , port = '', file = ''] = process.argv

const whose = defineTool({
  name: 'whose',
  input: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  handler({ id }, { headers }) {
    appendFileSync(file, `${port} ${id} ${headers['x-who']}\n`)
    return id
  },
})

const ignore = () => undefined
const log: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore, child: () => log }

const host = await createHost(
  {
    server: { name: 'whose', version: '1.0.0' },
    http: { port: Number(port), trustProxy: 1, keepAliveTimeout: '75s' },
    secrets: ['a secret for tests, long enough to be one'],
    toolsets: { main: [whose] },
    routes: { '/mcp': { toolsets: 'main' } },
    plugins: { 'transport-streamable': {}, health: {} },
  },
  { log },
)
process.once('SIGTERM', async () => {
  await host.close()
  process.exit(0)
})
await host.listen()
