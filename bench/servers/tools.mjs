// The tools that every server of the benchmark registers: `echo`, and copies of it under other names.
// Also what all servers have in common to say: who they are, and where they listen.
import { createServer as createTcpServer } from 'node:net'

export const SERVER_INFO = { name: 'bench', version: '1.0.0' }

/** Name and description of each tool; the first is `echo`. */
export const toolTexts = count =>
  Array.from({ length: count }, (_, index) => ({
    name: index === 0 ? 'echo' : `echo-${String(index).padStart(4, '0')}`,
    description: 'Returns the message that it was given, unchanged, as one block of text.',
  }))

/** The input of each tool, as servers that take JSON Schema want it. */
export const INPUT_SCHEMA = {
  type: 'object',
  properties: { message: { type: 'string', description: 'What to return.' } },
  required: ['message'],
}

/** A 2026-07-28 answer, for the servers that know no MCP. */
export const answerOf = (id, result) => ({
  jsonrpc: '2.0',
  id,
  result: { resultType: 'complete', ...result, _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO } },
})

/** A free port, for servers that do not tell which one they got for 0. */
export const findFreePort = () =>
  new Promise(resolve => {
    const probe = createTcpServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

/** Listens on a free port of the loopback interface and prints its address. */
export function listen(server) {
  server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
}
