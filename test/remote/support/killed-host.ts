// A process with connections to stdio servers, for tests that kill it. Arguments: the server script, and the common name of the servers.
import { connect } from '../../../remote/index.ts'

const [, , script = '', mark = ''] = process.argv
await Promise.all(
  ['stubborn', 'legacy', 'stubborn'].map(kind =>
    connect(
      { command: process.execPath, args: [script, kind, mark], stopGrace: 50 },
      { client: { name: 'test', version: '1' } },
    ),
  ),
)
console.log('ready')
