// A host in a process of its own that calls itself without end and is killed meanwhile. Argument: the folder of its audit.
import { createHost } from '../../../core/create-host.ts'
import { defineTool } from '../../../core/index.ts'
import { modern } from '../../support/rpc.ts'

const host = await createHost(
  {
    server: { name: 'busy', version: '1' },
    http: { port: 0 },
    secrets: ['a secret for tests, long enough to be one'],
    toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
    routes: { '/mcp': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, audit: { sync: 'never', rotate: { size: '16kb' } } },
  },
  { directory: process.argv[2] ?? '.' },
)
await host.listen()
async function callOn() {
  for (;;) {
    await modern(`${host.url}/mcp`, 'tools/call', { name: 'say', arguments: {} })
    console.log('called')
  }
}
await Promise.all(Array.from({ length: 8 }, callOn))
