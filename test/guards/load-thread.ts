// A thread that sends requests over open connections, each after the previous response. Its own allocations are not
// counted.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parentPort } from 'node:worker_threads'
import { type Asked, type Asking, NUMBER } from './counted-requests.ts'

const HEAD_END = '\r\n\r\n'

const sockets: Socket[] = []

async function openUpTo(count: number, port: number): Promise<void> {
  while (sockets.length < count) {
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    await once(socket, 'connect')
    sockets.push(socket)
    // The host closes one that is quiet for long.
    socket.on('close', () => sockets.splice(sockets.indexOf(socket), 1))
  }
}

/** Sends one request after the other on one connection; resolves with the last answer. */
function askOn(socket: Socket, request: Buffer, times: number, { status }: Asking): Promise<string> {
  return new Promise((resolve, reject) => {
    let left = times
    let text = ''
    let whole = Number.POSITIVE_INFINITY
    const fail = (error: Error) => over(() => reject(error))
    const ended = () => fail(new Error(`the connection was closed after: ${text}`))
    function over(then: () => void) {
      socket.off('data', read).off('error', fail).off('close', ended)
      then()
    }
    function read(chunk: Buffer) {
      text += chunk.toString('latin1')
      const end = text.indexOf(HEAD_END)
      if (end === -1) return
      if (whole === Number.POSITIVE_INFINITY) {
        whole = end + HEAD_END.length + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0)
      }
      if (text.length < whole) return
      const answer = text
      if (!answer.startsWith(`HTTP/1.1 ${status} `)) return fail(new Error(`answered ${answer}`))
      if (--left === 0) return over(() => resolve(answer))
      text = ''
      whole = Number.POSITIVE_INFINITY
      socket.write(request)
    }
    socket.on('data', read).on('error', fail).on('close', ended)
    socket.write(request)
  })
}

parentPort?.on('message', async (asking: Asking) => {
  const { port, request, connections, times } = asking
  try {
    await openUpTo(connections, port)
    const answers = await Promise.all(
      sockets.slice(0, connections).map((socket, index) => {
        // As wide for one as for any other.
        const bytes = Buffer.from(request.replace(NUMBER, String(1_000 + index)))
        return askOn(socket, bytes, times, asking)
      }),
    )
    parentPort?.postMessage({ answer: answers[0] } satisfies Asked)
  } catch (error) {
    parentPort?.postMessage({ failure: String(error) } satisfies Asked)
  }
})
