// A process that appends to streams of a file for as long as it lives, and says of each message that it was stored. For
// processes.system.ts.
import { openFile } from './sqlite-files.ts'

const [, , file = '', name = '', hostId = ''] = process.argv
const STREAMS = 8

try {
  const { events, sessions, node } = await openFile(file, { hostId })
  const write = async (stream: string) => {
    for (let known = 0; process.connected; ) {
      known = await events.append(name, stream, `${name} ${stream} ${known + 1}`, known, { epoch: 1, facts: node })
      process.send?.({ stream, seq: known })
    }
  }
  process.send?.({ node: sessions.node })
  await Promise.all(Array.from({ length: STREAMS }, (_, index) => write(String(index))))
} catch (error) {
  process.send?.({ failed: (error as Error).message })
  process.disconnect()
}
