// One stream of a session: every message is stored before its event id leaves, so that a client whose connection broke
// comes back with the id and gets exactly what it missed (2025-11-25 basic/transports, "Resumability and Redelivery").
import { randomBytes } from 'node:crypto'
import type { EventStream } from '../sse.ts'
import type { EventStore } from './event-store.ts'

/** Names a place in a stream: `<stream>.<seq>`. The stream's name is random, so no id of one session fits another. */
export interface EventId {
  readonly stream: string
  readonly seq: number
}

export function parseEventId(text: string): EventId | undefined {
  const [, stream, seq] = /^([\w-]{11})\.(\d{1,15})$/.exec(text) ?? []
  return stream === undefined ? undefined : { stream, seq: Number(seq) }
}

export interface ResumableStream {
  readonly name: string
  /** Stores a message, then sends it to whoever reads. */
  write(message: string): void
  /** After what was written: no more will come, and the reader's response ends. */
  finish(): void
  /** Closes the connection, not the stream; `retry` tells the client when to come back, in milliseconds. */
  disconnect(retry?: number): void
  /**
   * A reader for what comes after `seq`. It replaces the one before, which stays open and silent. False, and no
   * reader, where something after `seq` is gone.
   */
  attach(reader: EventStream, seq: number): Promise<boolean>
  /** The first event, which carries an id and no message, so that even what comes first can be resumed. */
  prime(reader: EventStream, retry: number): void
}

export interface ResumableStreamSettings {
  readonly store: EventStore
  readonly session: string
  /** Called once the stream is finished. */
  readonly finished: (name: string) => void
  /** Called when the store fails. */
  readonly failed: (error: unknown) => void
}

/** A new stream; nobody reads it yet. */
export function createResumableStream(settings: ResumableStreamSettings): ResumableStream {
  const { store, session, finished, failed } = settings
  const name = randomBytes(8).toString('base64url')
  const idOf = (seq: number) => `${name}.${seq}`
  let reader: EventStream | undefined
  let replaying = false
  let stored = 0
  let sent = 0
  let appending = 0
  let ending = false

  function endIfDone() {
    if (!ending || appending > 0 || replaying) return
    ending = false
    reader?.end()
    reader = undefined
    finished(name)
  }

  function deliver(seq: number, message: string) {
    stored = Math.max(stored, seq)
    if (!reader || replaying) return
    sent = seq
    if (!reader.send(message, idOf(seq))) reader = undefined
  }

  async function replay(to: EventStream): Promise<boolean> {
    // What is written meanwhile is stored, not sent: the next turn of the loop finds it, in order.
    do {
      const events = await store.after(session, name, sent)
      if (!events) return false
      for (const { seq, message } of events) {
        to.send(message, idOf(seq))
        sent = seq
      }
      stored = Math.max(stored, sent)
    } while (sent < stored)
    return true
  }

  return {
    name,
    write(message) {
      const seq = store.append(session, name, message)
      if (typeof seq === 'number') return deliver(seq, message)
      appending++
      seq
        .then(number => deliver(number, message), failed)
        .finally(() => {
          appending--
          endIfDone()
        })
    },
    finish() {
      ending = true
      endIfDone()
    },
    disconnect(retry) {
      reader?.end(retry)
      reader = undefined
    },
    async attach(next, seq) {
      reader = undefined
      replaying = true
      sent = seq
      const whole = stored === 0 && seq === 0 ? true : await replay(next)
      replaying = false
      if (whole) reader = next
      endIfDone()
      return whole
    },
    prime(to, retry) {
      to.event({ id: idOf(0), retry, data: '' })
    },
  }
}
