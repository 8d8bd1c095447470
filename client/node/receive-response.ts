// Sends a request of node:http, and settles in any case: with the response, or with an error.
import type { ClientRequest, IncomingMessage } from 'node:http'

/** Rejects on `error`, and on `close` without a response. After a protocol upgrade without a listener, Node emits only `close`. */
export const receiveResponse = (request: ClientRequest, body?: string | Uint8Array): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request
      .once('response', resolve)
      .on('error', reject)
      .once('close', () => reject(new Error('the connection was closed without a response')))
      .end(body)
  })
