// An event store plugin: it keeps the last messages of each resumable stream in this process.
import { definePlugin, type EventStore } from 'mcp-host/plugin'

interface Stream {
  last: number
  readonly events: Array<{ seq: number; message: string }>
}

/** Keeps the last 1,000 events of each stream, in this process. */
export function createPlainEvents(): EventStore {
  const streams = new Map<string, Stream>()
  return {
    append(session, name, message, known) {
      const stream = streams.get(`${session} ${name}`) ?? { last: known, events: [] }
      streams.set(`${session} ${name}`, stream)
      stream.events.push({ seq: ++stream.last, message })
      if (stream.events.length > 1_000) stream.events.shift()
      return stream.last
    },
    after(session, name, seq, most = Infinity) {
      const stream = streams.get(`${session} ${name}`)
      if (!stream || seq > stream.last || seq < stream.last - stream.events.length) return undefined
      let bytes = 0
      const missed = stream.events.filter(event => event.seq > seq)
      const end = missed.findIndex(({ message }, index) => {
        bytes += Buffer.byteLength(message)
        return bytes > most && index > 0
      })
      return most === 0 ? [] : missed.slice(0, end < 0 ? undefined : end)
    },
    drop(session, name) {
      for (const key of [...streams.keys()]) {
        if (name === undefined ? key.startsWith(`${session} `) : key === `${session} ${name}`) streams.delete(key)
      }
    },
  }
}

export const plainEvents = definePlugin({
  setup(host) {
    host.provide('eventStore', createPlainEvents())
  },
})
