// The stores of store-sqlite at work, until they are killed: two processes' worth of sessions, streams and grants in one file.
// Says of each thing, once it is acknowledged, where the log of the power cut was. Arguments: the file, the log.
import { statSync, writeSync } from 'node:fs'
import { BOUNDS_OF_SESSIONS, recordOf } from '../../plugins/store-sqlite/support/records.ts'
import { type OpenedFile, openFile } from '../../plugins/store-sqlite/support/sqlite-files.ts'
import type { Acknowledged } from './acknowledged.ts'

const [file = '', log = ''] = process.argv.slice(2)
const STREAMS = 3
const DAY = 86_400_000

function tell(acknowledged: Omit<Acknowledged, 'at'>) {
  writeSync(1, `${JSON.stringify({ ...acknowledged, at: statSync(log).size })}\n`)
}

const textOf = (name: string, seq: number) => `${name} ${seq} ${'x'.repeat((seq * 397) % 3_000)}`

async function append({ events, node }: OpenedFile, stream: string) {
  const [session, writer] = [`session of ${node}`, { epoch: 1, facts: node }]
  for (let seq = 1; ; seq++) {
    const text = textOf(stream, seq)
    await events.append(session, stream, text, seq - 1, writer)
    tell({ kind: 'event', key: `${session}/${stream}`, seq, text })
  }
}

async function openAndEnd({ sessions, node }: OpenedFile) {
  for (let index = 0; ; index++) {
    const digest = `${node} ${index}`
    await sessions.create(digest, recordOf(node), BOUNDS_OF_SESSIONS)
    tell({ kind: 'session', key: digest })
    await sessions.change(digest, { watch: `note://${index}` })
    tell({ kind: 'watched', key: digest, text: `note://${index}` })
    if (index % 3 > 0) continue
    tell({ kind: 'session ends', key: digest })
    await sessions.end(digest, undefined)
    tell({ kind: 'session ended', key: digest })
  }
}

async function grant({ grants, node }: OpenedFile) {
  for (let index = 0; ; index++) {
    const key = `granted:${node} ${index}`
    await grants.set(key, `login ${index}`, DAY)
    tell({ kind: 'grant', key, text: `login ${index}` })
    if (index % 2 > 0) continue
    tell({ kind: 'grant is taken', key })
    await grants.take(key)
    tell({ kind: 'grant was taken', key })
  }
}

for (const opened of [await openFile(file), await openFile(file)]) {
  for (let stream = 0; stream < STREAMS; stream++) void append(opened, `stream ${stream}`)
  void openAndEnd(opened)
  void grant(opened)
}
