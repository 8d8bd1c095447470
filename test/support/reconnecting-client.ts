// A client of one resumable stream whose connections break. It resumes from the last event id and records every violation of the
// stream's guarantees.

import type { ResumableStream } from '../../core/sessions/resumable-stream.ts'
import type { EventStream } from '../../core/transport.ts'

interface Connection {
  readonly reader: EventStream
  /** Messages sent on it; the client saw all except those lost in the break. */
  readonly sent: Array<{ id: string | undefined; message: string }>
  readonly since: number
  broken: boolean
  ended: boolean
}

export class WanderingClient {
  readonly #stream: ResumableStream
  readonly #reading: () => Promise<unknown>
  /** Messages in order of arrival, each with its id. */
  readonly received: Array<{ id: string | undefined; message: string }> = []
  readonly breaches: string[] = []
  #current: Connection | undefined

  /** `reading`: delay while the client reads a message. */
  constructor(stream: ResumableStream, reading: () => Promise<unknown> = () => Promise.resolve()) {
    this.#stream = stream
    this.#reading = reading
  }

  #seqOf(id: string | undefined): number {
    return id === undefined ? Number.NaN : Number(id.slice(this.#stream.name.length + 1))
  }

  #connect(since: number): Connection {
    const { breaches } = this
    const breach = (what: string) => void breaches.push(what)
    const connection: Connection = {
      sent: [],
      since,
      broken: false,
      ended: false,
      reader: {
        send: (message, id) => {
          if (connection.ended) breach(`${message} was sent after the end`)
          if (connection.broken || connection.ended) return false
          if (connection !== this.#current) breach(`${message} was sent to a reader that was replaced`)
          connection.sent.push({ id, message })
          return true
        },
        event: () => true,
        endWith: () => breach('a resumable stream ends with nothing that was not stored'),
        end: () => {
          if (connection.ended) breach('a reader was ended twice')
          connection.ended = true
        },
        whenClosed: () => undefined,
        drained: async () => {
          if (!connection.broken && !connection.ended) await this.#reading()
        },
        get closed() {
          return connection.broken || connection.ended
        },
      },
    }
    return connection
  }

  /** Breaks the connection; up to `lost` of the last messages never arrive. */
  drop(lost: number): void {
    const connection = this.#current
    if (!connection) return
    connection.broken = true
    this.received.push(...connection.sent.splice(0, connection.ended ? undefined : connection.sent.length - lost))
    this.#current = undefined
  }

  /** Opens a new connection from the last event id. An open connection counts as dead. */
  async comeBack(): Promise<void> {
    const before = this.#current
    if (before) this.received.push(...before.sent.splice(0))
    const since = this.received.length === 0 ? 0 : this.#seqOf(this.received.at(-1)?.id)
    const connection = this.#connect(since)
    this.#current = connection
    if (!(await this.#stream.attach(connection.reader, since))) this.breaches.push(`nothing to resume after ${since}`)
  }

  /** The received messages, when no more will come. */
  finish(): { readonly messages: string[]; readonly seqs: number[]; readonly ended: boolean } {
    const ended = this.#current?.ended ?? false
    this.received.push(...(this.#current?.sent.splice(0) ?? []))
    return {
      messages: this.received.map(({ message }) => message),
      seqs: this.received.map(({ id }) => this.#seqOf(id)),
      ended,
    }
  }
}
