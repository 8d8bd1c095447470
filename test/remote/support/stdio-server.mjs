// MCP servers over stdio: `node stdio-server.mjs <kind>`.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { McpServer as LegacyServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const text = value => ({ content: [{ type: 'text', text: String(value) }] })
const send = message => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

/** A legacy server by hand, which answers each call with `answer`. */
function serveByHand(answer) {
  createInterface({ input: process.stdin }).on('line', line => {
    const { id, method, params } = JSON.parse(line)
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'by hand', version: '1' } }
    if (method === 'initialize') send({ id, result })
    else if (method === 'tools/call') answer(id, params)
    else if (id !== undefined) send({ id, error: { code: -32601, message: 'unknown' } })
  })
}

/** A child that ends by SIGKILL only. */
const startStubborn = () =>
  spawn(
    process.execPath,
    ['-e', "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6)", process.argv[3] ?? ''],
    {
      stdio: 'ignore',
    },
  )

const kinds = {
  async legacy() {
    const server = new LegacyServer({ name: 'legacy', version: '1' })
    server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, ({ a, b }) => text(a + b))
    server.registerTool('env', {}, () => text(JSON.stringify(process.env)))
    server.registerTool('cwd', {}, () => text(process.cwd()))
    server.registerTool('roots', {}, async () => text(JSON.stringify((await server.server.listRoots()).roots)))
    await server.connect(new StdioServerTransport())
  },
  modern() {
    const create = () => {
      const server = new McpServer({ name: 'modern', version: '2' })
      server.registerTool('add', { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => text(a + b))
      return server
    }
    serveStdio(create, { legacy: 'reject' })
  },
  /** A modern server that responds to the probe only after `initialize`, as one that started slowly. */
  slow() {
    let probe
    createInterface({ input: process.stdin }).on('line', line => {
      const { id, method, params } = JSON.parse(line)
      if (method === 'server/discover') probe = id
      else if (method === 'initialize') {
        send({ id, error: { code: -32022, message: 'unsupported', data: { supported: ['2026-07-28'] } } })
        send({ id: probe, result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } })
      } else if (id !== undefined) send({ id, result: text(JSON.stringify(params._meta)) })
    })
  },
  /** Ignores SIGTERM and the end of stdin, and has a child that does so, too. */
  stubborn() {
    startStubborn()
    process.on('SIGTERM', () => undefined)
    setInterval(() => undefined, 1e6)
    serveByHand(id => send({ id, result: text(process.pid) }))
  },
  noisy() {
    console.log('starting up ...')
    // Twenty lines in each write.
    for (let line = 0; line < 5_000; line += 20) {
      const lines = Array.from({ length: 20 }, (_, index) => `line ${line + index} ${'x'.repeat(100)}\n`)
      process.stderr.write(lines.join(''))
    }
    serveByHand(id => {
      console.log('a debug line')
      send({ id, result: text('ok') })
    })
  },
  noServer() {
    for (let line = 0; line < 20; line++) console.log(`Usage: something ${line}`)
    setInterval(() => undefined, 1e6)
  },
  silent() {
    console.error('waiting for a database')
    process.stdin.resume()
  },
  /** Exits when it gets a request before initialize. */
  strict() {
    createInterface({ input: process.stdin }).once('line', line => {
      if (JSON.parse(line).method !== 'initialize') process.exit(3)
    })
    serveByHand(id => send({ id, result: text('ok') }))
  },
  crash() {
    console.error('fatal: no configuration')
    process.exit(7)
  },
  dies() {
    serveByHand(() => {
      console.error('out of memory')
      process.exit(9)
    })
  },
  largeError() {
    serveByHand(id => send({ id, error: { code: -32021, message: 'no', data: { x: 'x'.repeat(5_000) } } }))
  },
  /** Sends messages of 8,000 levels. */
  deep() {
    const data = `${'['.repeat(8_000)}${']'.repeat(8_000)}`
    const write = (id, fields) => process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},${fields}}\n`)
    let asked
    createInterface({ input: process.stdin }).on('line', line => {
      const { id, error } = JSON.parse(line)
      if (id === 'deep') send({ id: asked, result: text(error?.code) })
    })
    serveByHand((id, { name }) => {
      if (name === 'error') write(id, `"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":${data}}}`)
      else if (name === 'ask') {
        asked = id
        write('deep', `"method":"elicitation/create","params":{"message":"x","requestedSchema":${data}}`)
      } else {
        const params = `{"level":"error","data":${data}}`
        process.stdout.write(`{"jsonrpc":"2.0","method":"notifications/message","params":${params}}\n`)
        send({ id, result: text('ok') })
      }
    })
  },
  /** Sends a notification before each result. */
  logs() {
    serveByHand(id => {
      send({ method: 'notifications/message', params: { level: 'info', data: 'x' } })
      send({ id, result: text('ok') })
    })
  },
  /** Its large responses are no valid JSON. */
  huge() {
    const padding = 'x'.repeat(3_000_000)
    serveByHand((id, { name }) => {
      if (name === 'small') send({ id, result: text('ok') })
      else if (name === 'last') process.stdout.write(`{"result": {"x": "${padding}, "id": ${id} }\n`)
      else process.stdout.write(`{"jsonrpc": "2.0", "id": ${id}, "result": {"x": "${padding}\n`)
    })
  },
}

await kinds[process.argv[2]]()
