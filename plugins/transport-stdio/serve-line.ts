// Serves one client over a stdio connection: a session after `initialize`, and requests with their own version.
import { HostError } from '../../core/index.ts'
import { connectClient, MODERN_REVISION, shown, type Transport, type ValidMessage } from '../../core/transport.ts'
import { namesOwnVersion } from '../families/per-request/index.ts'
import { createOutput, type Line, readLines, type StdioEnds } from './lines.ts'
import { type Caller, createPerRequest } from './per-request.ts'

export interface ServedLine {
  /** Resolves when client or session has ended. Responses to running requests can still be sent. */
  readonly ended: Promise<void>
  /** Cancels running requests; resolves when all responses are written. */
  close(): Promise<void>
}

function textOf(line: Line, most: number): string {
  if ('text' in line) return line.text
  if (line.fault === 'too long') throw new HostError('payloadTooLarge', { detail: `a line has at most ${most} bytes` })
  throw new HostError('parseError', { detail: 'the line is not UTF-8' })
}

/** Serves a client. Throws a HostError `unauthorized` or `forbidden` if the route's `authorize` refuses the user. */
export function serveLine(host: Transport, caller: Caller, ends: StdioEnds): ServedLine {
  let end = () => {}
  const ended = new Promise<void>(resolve => {
    end = resolve
  })
  const output = createOutput(ends.output, {
    onClosed(why) {
      if (why === 'unread') host.log.warn({ code: 'MH1309' }, 'closed the connection of a client that does not read')
      abandon()
    },
  })
  const perRequest = createPerRequest(host, caller, output)
  const line = {
    send: (message: string) => output.send(message),
    respond: (message: string) => output.respond(message),
    close: () => end(),
  }
  const client = connectClient(host, { ...caller, ip: 'stdio' }, line, takePerRequest)

  function abandon() {
    perRequest.cancelAll(new Error('the client has disconnected'))
    void client.close()
    end()
  }

  /** Handles requests with their own version, and their cancellation. */
  function takePerRequest(message: ValidMessage): boolean {
    if (message.kind === 'request' && namesOwnVersion(message)) {
      perRequest.handle(message).catch(thrown => client.refuse(thrown, message, MODERN_REVISION))
      return true
    }
    if (message.kind !== 'notification' || message.method !== 'notifications/cancelled') return false
    const { requestId, reason } = message.params
    const why = typeof reason === 'string' ? shown(reason) : 'the client cancelled the request'
    return perRequest.cancel(requestId, new Error(why))
  }

  async function readAll() {
    const most = host.config.http.maxBodySize
    for await (const line of readLines(ends.input, most)) {
      if (output.closed) break
      try {
        const text = textOf(line, most)
        if (text.trim() !== '') await client.receive(text)
      } catch (thrown) {
        client.refuse(thrown)
      }
      await output.drained()
    }
    end()
  }
  void readAll()

  return {
    ended,
    async close() {
      await output.end()
      abandon()
      ends.input.destroy()
    },
  }
}
