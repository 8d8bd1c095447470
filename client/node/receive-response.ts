// Sends a request of node:http, and settles in any case: with the response, or with an error.
import type { ClientRequest, IncomingMessage } from 'node:http'

/** Rejects also if the connection ends without `error`, as it does after a protocol upgrade that nobody listens for. */
export const receiveResponse = (request: ClientRequest, body?: string | Uint8Array): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    request
      .once('response', resolve)
      .on('error', reject)
      .once('close', () => reject(new Error('the connection was closed without a response')))
      .end(body)
  })
