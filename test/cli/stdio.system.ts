// Tests `mcp-host stdio` as a process of a desktop client: stdout contains only protocol messages.
import { createHash } from 'node:crypto'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioClientTransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { CORE, cliCommand, startCli, stopAll } from './run-cli.ts'
import { stdioConfig } from './stdio-config.ts'

const TOOLS = `[
  defineTool({ name: 'noisy', handler(_, { user }) {
    console.log('printed by a tool'); process.stdout.write('written by a tool\\n'); console.table([1])
    return 'quiet for ' + user?.subject
  } }),
  defineTool({ name: 'ask', async handler(_, { elicit }) {
    const { content } = await elicit({ message: 'Name?', requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } })
    return 'Hello, ' + content.name
  } }),
  defineTool({ name: 'wait', handler: (_, { signal }) => new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
    console.log('wait runs')
  }) }),
  defineTool({ name: 'quick', handler: () => 'done' }),
  defineTool({ name: 'last', handler: () => new Promise(done => {
    const end = () => setImmediate(done, 'done')
    process.stdin.readableEnded ? end() : process.stdin.once('end', end)
    process.once('SIGTERM', end)
    console.log('last runs')
  }) }),
  defineTool({ name: 'blob', input: { type: 'object', properties: { size: { type: 'integer' } } }, handler: ({ size }) => 'x'.repeat(size) }),
  defineTool({ name: 'grow', handler(_, { host }) { host.tools.add(defineTool({ name: 'extra', handler: () => 'extra' })); return 'grown' } }),
]`

const folderOf = () =>
  makeFolder({
    'mcp.config.mjs': stdioConfig({
      core: CORE,
      tools: TOOLS,
      before: "console.log('printed by the config')",
      routes: "{ '/mcp': { toolsets: 'all' } }",
      plugins: "{ 'transport-streamable': {}, 'transport-sse': {}, 'transport-stdio': { user: { subject: 'ada' } } }",
    }),
  })

describe('mcp-host stdio as a process', () => {
  after(async () => {
    await stopAll()
    await removeFolders()
  })

  it('serves the official client as a process; nothing but the protocol is on stdout', async () => {
    const [command = '', ...args] = cliCommand(['stdio', '--route', '/mcp'])
    const transport = new StdioClientTransport({ command, args, cwd: await folderOf(), stderr: 'pipe' })
    let printed = ''
    transport.stderr?.on('data', chunk => {
      printed += String(chunk)
    })
    const client = new Client(
      { name: 'desktop', version: '1' },
      {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: 'auto' },
      },
    )
    const strays: Error[] = []
    client.onerror = error => void strays.push(error)
    client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Bob' } }))
    await client.connect(transport)
    expect(client.getNegotiatedProtocolVersion()).to.equal('2026-07-28')
    const call = async (name: string, input: Record<string, unknown> = {}) =>
      ((await client.callTool({ name, arguments: input })).content as { text: string }[])[0]?.text
    expect(await call('noisy')).to.equal('quiet for ada')
    expect(await call('ask')).to.equal('Hello, Bob')
    const blob = (await call('blob', { size: 3_000_000 })) ?? ''
    expect(createHash('sha256').update(blob).digest('hex')).to.equal(
      createHash('sha256').update('x'.repeat(3_000_000)).digest('hex'),
    )
    const stop = new AbortController()
    const waiting = client.callTool({ name: 'wait', arguments: {} }, { signal: stop.signal })
    await eventually('the call runs', () => printed.includes('wait runs'))
    stop.abort('enough')
    expect(String(await waiting.catch((error: unknown) => error))).to.include('enough')
    expect(await call('quick')).to.equal('done')
    await client.close()
    expect(strays).to.deep.equal([])
    for (const words of ['printed by the config', 'printed by a tool', 'written by a tool', '(index)']) {
      expect(printed).to.include(words)
    }
  })

  it('serves the official client of SDK 1 as a process, with list_changed', async () => {
    const [command = '', ...args] = cliCommand(['stdio', '-c', 'mcp.config.mjs'])
    const client = new ClientV1({ name: 'desktop', version: '1' }, { capabilities: {} })
    let changes = 0
    client.fallbackNotificationHandler = async () => void changes++
    await client.connect(new StdioClientTransportV1({ command, args, cwd: await folderOf(), stderr: 'ignore' }))
    await client.callTool({ name: 'grow', arguments: {} })
    expect((await client.listTools()).tools.map(({ name }) => name)).to.include('extra')
    expect(changes).to.equal(1)
    await client.close()
  })

  it('completes running calls when stdin ends, then exits 0; also on SIGTERM and without a reader', async () => {
    const cwd = await folderOf()
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    const lines = [
      { id: 0, method: 'initialize', params: initialize },
      { method: 'notifications/initialized' },
      // Ends after stdin, or after SIGTERM.
      { id: 1, method: 'tools/call', params: { name: 'last' } },
      { id: 1, method: 'tools/call', params: { name: 'quick' } },
    ].map(message => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    const [initializing, initialized, last, quick] = lines as [string, string, string, string]
    const opening = initializing + initialized
    const piped = startCli(['stdio'], cwd)
    piped.child.stdin.end(opening + last)
    const { code, stdout } = await piped.ended
    expect([
      code,
      stdout
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line).id),
    ]).to.deep.equal([0, [0, 1]])

    const told = startCli(['stdio'], cwd)
    told.child.stdin.write(opening + last)
    await told.logged(/^last runs$/m)
    told.child.kill('SIGTERM')
    const ended = await told.ended
    expect([ended.code, ended.stdout.includes('"id":1')]).to.deep.equal([0, true])

    const unread = startCli(['stdio'], cwd)
    unread.child.stdin.on('error', () => undefined).write(opening)
    await unread.printed(/"id":0/)
    unread.child.stdout.destroy()
    unread.child.stdin.write(quick)
    const { code: silent, stderr } = await unread.ended
    expect([silent, /EPIPE|stack/.test(stderr)]).to.deep.equal([0, false])
  })
})
