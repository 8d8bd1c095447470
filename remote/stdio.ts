// The stdio transport: one line per message.
import type { CommandTarget } from './connection-types.ts'
import type { Exchange } from './messages.ts'
import { type ServerProcessEvents, startServerProcess } from './process/server-process.ts'

export function createStdioTransport(target: CommandTarget, maxLine: number, events: ServerProcessEvents) {
  const server = startServerProcess(target, maxLine, events)
  return {
    process: server,
    perform: async ({ out }: Exchange) => server.write(out.text),
    leave: async () => undefined,
    sessionId: undefined,
    cancelsByClosing: () => false,
  }
}
