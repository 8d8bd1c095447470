// The event store of all processes of this host, in the file. thread/events.ts has what happens there.
import { createHash } from 'node:crypto'
import { type EventStore, StreamFenced, type StreamWriter } from '../../core/transport.ts'
import type { RowWriter } from './thread/events.ts'
import type { Writer } from './writer.ts'

/** Where nobody says who writes: one writer for ever. */
const SOLE: StreamWriter = { epoch: 0, facts: '' }

/** Ids are what sessions are opened with, so they are not written down. */
const nameOf = (session: string) => createHash('sha256').update(session).digest('base64url').slice(0, 32)

const rowOf = ({ epoch, facts, bus = '', finished = false }: StreamWriter): RowWriter => ({
  epoch,
  facts,
  bus,
  finished,
})

function unfenced<Value>(answer: Value): Exclude<Value, 'fenced'> {
  if (answer === 'fenced') throw new StreamFenced()
  return answer as Exclude<Value, 'fenced'>
}

export const createSqliteEventStore = (file: Writer): EventStore => ({
  async append(session, stream, message, known, writer = SOLE) {
    const seq = unfenced(await file.ask('appendEvent', nameOf(session), stream, message, known, rowOf(writer)))
    if (seq === 'taken') throw new Error(`another message of this stream has the number ${known + 1}`)
    return seq
  },
  after: (session, stream, seq, most) => file.ask('eventsAfter', nameOf(session), stream, seq, most),
  async drop(session, stream) {
    if (stream === undefined) await file.ask('dropStreams', nameOf(session))
    else await file.ask('dropStream', nameOf(session), stream)
  },
  shared: {
    async open(session, stream, writer, known = 0) {
      unfenced(await file.ask('openStream', nameOf(session), stream, rowOf(writer), known))
    },
    state: (session, stream) => file.ask('streamState', nameOf(session), stream),
    async claim(session, stream, writer) {
      return unfenced(await file.ask('claimStream', nameOf(session), stream, rowOf(writer)))
    },
    async finish(session, stream, writer) {
      unfenced(await file.ask('finishStream', nameOf(session), stream, rowOf(writer)))
    },
  },
})
