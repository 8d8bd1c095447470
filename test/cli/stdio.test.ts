// `mcp-host stdio`: what it makes of a config, in this process, and the journey of desktop clients with a real one.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioClientTransportV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { expect } from 'chai'
import { type Serving, serveStdio } from '../../cli/stdio.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { QUIET } from '../plugins/transport-stdio/stdio-client.ts'
import { eventually } from '../support/eventually.ts'
import { CORE, cliCommand, startCli, stopAll } from './run-cli.ts'

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
const config = (routes: string, plugins: string) => `import { defineTool, definePlugin } from '${CORE}'
process.argv[2] === 'stdio' && console.log('printed by the config')
export default {
  server: { name: 'stdio-test', version: '1.0.0' },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: ${TOOLS}, other: [defineTool({ name: 'other', handler: () => 'other' })] },
  routes: ${routes},
  plugins: ${plugins},
}
`
const ONE = "{ '/mcp': { toolsets: 'all' } }"
const TWO =
  "{ '/mcp': { toolsets: 'all' }, '/t/:which?': { toolsets: ':which', default: ['other'] }, '/x/:must': { toolsets: ':must' } }"
const ADA = "{ 'transport-streamable': {}, 'transport-sse': {}, 'transport-stdio': { user: { subject: 'ada' } } }"

const folderOf = (routes = ONE, plugins = ADA) => makeFolder({ 'mcp.config.mjs': config(routes, plugins) })

const open: Serving[] = []
async function serve(cwd: string, route?: string) {
  const ends = { input: new PassThrough(), output: new PassThrough() }
  const serving = await serveStdio({ config: undefined, route, cwd }, ends, QUIET)
  open.push(serving)
  const answer = once(ends.output, 'data')
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  ends.input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })}\n`)
  const { result } = JSON.parse(String((await answer)[0])) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}
const refusalOf = async (folder: string, route?: string) =>
  serve(folder, route).then(
    () => 'served',
    (error: Error & { exitCode?: number }) => `${error.exitCode}: ${error.message}`,
  )

describe('mcp-host stdio', function () {
  this.timeout(60_000)
  after(async () => {
    await Promise.all(open.map(serving => serving.close()))
    await stopAll()
    await removeFolders()
  })

  it('finds the route: the only one, by its path, by an address of it; and says which there are', async () => {
    const [one, two] = [await folderOf(), await folderOf(TWO)]
    expect(await serve(one)).to.include('noisy')
    expect(await serve(one, '/mcp')).to.include('noisy')
    expect(await serve(two, '/t')).to.deep.equal(['other'])
    expect(await serve(two, '/t/:which?')).to.deep.equal(['other'])
    expect(await serve(two, '/t/all')).to.include('noisy')
    const known = 'there are: /mcp, /t/:which?, /x/:must'
    expect(await refusalOf(two)).to.equal(`2: the config has several routes; say which with --route; ${known}`)
    expect(await refusalOf(two, '/nowhere')).to.equal(`2: --route /nowhere: nothing is served there; ${known}`)
    expect(await refusalOf(two, '/x/:must')).to.equal(
      '2: --route /x/:must has a parameter; give an address with its value, such as /x/all',
    )
  })

  it('needs no entry for the plugin, keeps to one that is false, and checks its options with their line', async () => {
    expect(await serve(await folderOf(ONE, '{}'))).to.include('noisy')
    const off = "{ '/mcp': { toolsets: 'all', plugins: { 'transport-streamable': {}, 'transport-stdio': false } } }"
    expect(await refusalOf(await folderOf(off))).to.match(
      /^2: routes\['\/mcp'\] has transport-stdio switched off; take/,
    )
    const wrong = "{ 'transport-stdio': { user: { scopes: ['a'] } } }"
    expect(await refusalOf(await folderOf(ONE, wrong))).to.match(
      /mcp\.config\.mjs:\d+ +plugins\['transport-stdio'\]\.user\.subject\n +missing/,
    )
  })

  it('fails closed: a route that wants a user who is not in the config is not served', async () => {
    const authorized = "{ '/mcp': { toolsets: 'all', authorize: { scope: 'use' } } }"
    const decider = `by: definePlugin({ options: { type: 'object' }, provides: ['user', 'authorize'], setup() {} })()`
    const folder = await folderOf(authorized, `{ ${decider} }`)
    expect(await refusalOf(folder)).to.match(
      /^2: routes\['\/mcp'\] refuses this client: Authentication required.*; say who calls: plugins\['transport-stdio'\]\.user/,
    )
    const known = await folderOf(
      authorized,
      `{ ${decider}, 'transport-stdio': { user: { subject: 'ada', scopes: ['use'] } } }`,
    )
    expect(await serve(known)).to.include('noisy')
  })

  for (const era of ['auto', '2025-11-25'] as const) {
    it(`serves the official client as a process (${era}); nothing but the protocol is on stdout`, async () => {
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
          ...(era === 'auto' && { versionNegotiation: { mode: 'auto' } }),
        },
      )
      const strays: Error[] = []
      client.onerror = error => void strays.push(error)
      client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Bob' } }))
      await client.connect(transport)
      expect(client.getNegotiatedProtocolVersion()).to.equal(era === 'auto' ? '2026-07-28' : era)
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
  }

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

  it('answers what runs when stdin ends, then exits 0; so it does on SIGTERM; and quietly when nobody reads', async () => {
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

  it('says in a word what is wrong, on stderr alone', async () => {
    const { code, stdout, stderr } = await startCli(['stdio', '--route', '/no'], await folderOf()).ended
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr).to.include('mcp-host: --route /no: nothing is served there; there is: /mcp\n')
  })
})
