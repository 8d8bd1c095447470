// A process with connections to stdio servers, for tests that kill it. Argument: the common name of the servers.
import { connect } from '../../../remote/index.ts'

const [, , mark = ''] = process.argv
const script = new URL('stdio-server.mjs', import.meta.url).pathname
const connections = await Promise.all(
  ['stubborn', 'legacy', 'stubborn'].map(kind =>
    connect(
      { command: process.execPath, args: [script, kind, mark], stopGrace: 50 },
      { client: { name: 'test', version: '1' } },
    ),
  ),
)
process.once('SIGTERM', async () => {
  await Promise.all(connections.map(connection => connection.close()))
  process.exit()
})
console.log('ready')
