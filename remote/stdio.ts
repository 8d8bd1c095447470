// The stdio transport: one line per message.
import type { CommandTarget } from './connection-types.ts'
import type { Transport } from './http/link.ts'
import type { Exchange } from './messages.ts'
import { type ServerProcess, type ServerProcessEvents, startServerProcess } from './process/server-process.ts'

export interface StdioTransport extends Transport {
  readonly process: ServerProcess
}

export function createStdioTransport(
  target: CommandTarget,
  maxLine: number,
  events: ServerProcessEvents,
): StdioTransport {
  const server = startServerProcess(target, maxLine, events)
  return {
    process: server,
    async perform(exchange: Exchange): Promise<void> {
      server.write(exchange.out.text)
    },
    leave: async () => undefined,
    sessionId: undefined,
    cancelsByClosing: () => false,
  }
}
