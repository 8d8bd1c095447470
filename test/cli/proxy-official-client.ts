// An official client of either generation at the stdin and stdout of a proxy in this process.
import { PassThrough } from 'node:stream'
import type { Client as NewClient } from '@modelcontextprotocol/client'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { Relay } from '../../cli/proxy/relay.ts'
import type { ProxyValues } from '../../cli/proxy.ts'
import { startProxy } from '../../cli/proxy.ts'
import { QUICK } from './proxy-client.ts'
import { testContext } from './run-command.ts'

export interface ProxiedEnd {
  readonly relay: Relay
  /** Every line of the proxy. */
  readonly lines: string[]
}

/** Connects a client through a proxy to the server at `url`. */
export async function connectThrough(
  client: Client | NewClient,
  url: string,
  values: ProxyValues = {},
): Promise<ProxiedEnd> {
  const [input, output] = [new PassThrough(), new PassThrough()]
  const buffer = new ReadBuffer()
  const lines: string[] = []
  const transport: Transport = {
    async start() {
      output.on('data', (chunk: Buffer) => {
        buffer.append(chunk)
        for (let message = buffer.readMessage(); message !== null; message = buffer.readMessage()) {
          lines.push(JSON.stringify(message))
          transport.onmessage?.(message)
        }
      })
    },
    async send(message: JSONRPCMessage) {
      input.write(serializeMessage(message))
    },
    async close() {
      input.end()
      transport.onclose?.()
    },
  }
  const relay = await startProxy(testContext(), url, values, { input, output }, QUICK)
  await (client as Client).connect(transport)
  return { relay, lines }
}
