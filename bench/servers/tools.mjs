// The tools of all servers in the benchmark: `echo`, and copies of it with other names. Also starts the servers.
import { createServer as createTcpServer } from 'node:net'

export const SERVER_INFO = { name: 'bench', version: '1.0.0' }

/** Names and descriptions. The first tool is `echo`. */
export const makeTools = count =>
  Array.from({ length: count }, (_, index) => ({
    name: index === 0 ? 'echo' : `echo-${String(index).padStart(4, '0')}`,
    description: 'Returns the message that it was given, unchanged, as one block of text.',
  }))

export const INPUT_SCHEMA = {
  type: 'object',
  properties: { message: { type: 'string', description: 'What to return.' } },
  required: ['message'],
}

/** Creates a 2026-07-28 response, for servers without MCP support. */
export const createResponse = (id, result) => ({
  jsonrpc: '2.0',
  id,
  result: { resultType: 'complete', ...result, _meta: { 'io.modelcontextprotocol/serverInfo': SERVER_INFO } },
})

/** For servers that do not report their port if it is 0. */
export const findFreePort = () =>
  new Promise(resolve => {
    const probe = createTcpServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address()
      probe.close(() => resolve(port))
    })
  })

/** Listens on a free port of the loopback interface and prints the URL. */
export function listen(server) {
  server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`))
}
