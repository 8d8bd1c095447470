// Tests `mcp-host call` and `list` with our host and servers of the official SDK, for each protocol version and
// transport.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool, HostError, ToolError } from '../../core/index.ts'
import { definePlugin } from '../../core/internal.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { journey, waits } from '../fixtures/journey-toolset.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startBadProxy, stopProxies } from './bad-proxy.ts'
import { type Ended, runCli, startCli, stopAll } from './in-process.ts'
import { type SdkServer, startSdkServer, stopSdkServers } from './sdk-server.ts'

const form = {
  type: 'object',
  properties: {
    name: { type: 'string', title: 'Your name' },
    age: { type: 'integer' },
    color: { type: 'string', enum: ['red', 'green'] },
    news: { type: 'boolean', default: false },
  },
  required: ['name', 'age', 'color'],
} as const

const fail = () => {
  throw new ToolError('no luck')
}

const own = [
  defineTool({
    name: 'types',
    description: 'Gives back what it got.\nAs it got it.',
    input: {
      type: 'object',
      properties: {
        text: { type: 'string' },
        number: { type: 'number' },
        flag: { type: 'boolean' },
        list: { type: 'array', items: { type: 'integer' } },
        any: {},
      },
    },
    handler: args => ({ ...args }),
  }),
  defineTool({
    name: 'survey',
    handler: async (_, { elicit }) => {
      const { action, content = {} } = await elicit({ message: 'Who are you?', requestedSchema: form })
      return { action, content }
    },
  }),
  defineTool({
    name: 'blocks',
    handler: () => ({
      content: [
        { type: 'text', text: 'a text with \u001b[31mcolor\u001b[0m\nand two lines' },
        { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
        { type: 'resource_link', uri: 'pages://1', name: 'page 1' },
      ],
    }),
  }),
]

describe('mcp-host call and list', () => {
  let folder: string
  let url: string
  let sse: string
  let older: string
  let sdk: SdkServer
  let env: NodeJS.ProcessEnv

  const run = (...args: string[]): Promise<Ended> => runCli(args, folder, env)

  before(async () => {
    folder = await makeFolder({ 'arguments.json': '{"number": 3}' })
    env = { MCP_HOST_HOME: folder, BROWSER: '/no/such/program' }
    const plugins = { 'transport-streamable': {}, 'transport-sse': {} }
    const host = await startHost({
      toolsets: { all: [...journey, ...own] },
      routes: { '/mcp': { toolsets: 'all' } },
      plugins,
    })
    url = `${host.url}/mcp`
    sse = `${host.url}/mcp/sse`
    // Without its headers no request is one of 2026-07-28.
    const proxy = await startBadProxy()
    proxy.target = host.url
    proxy.faults = { sent: { 'mcp-method': null, 'mcp-protocol-version': null } }
    older = `${proxy.url}/mcp`
    sdk = await startSdkServer()
  })
  after(async () => {
    await stopAll()
    await stopProxies()
    await stopHosts()
    await stopSdkServers()
    await removeFolders()
  })

  it('support every protocol version and both transports, with our host and others', async () => {
    const servers = [
      [url, '2026-07-28', 'test-host'],
      [older, '2025-11-25', 'test-host'],
      [sse, '2025-11-25', 'test-host'],
      [sdk.streamable, '2025-11-25', 'sdk-server'],
      [sdk.sse, '2025-11-25', 'sdk-server'],
    ] as const
    const lists = await Promise.all(servers.map(([address]) => run('list', address, '--tools', '--json')))
    const found = lists.map(({ code, stdout, stderr }) => {
      expect([code, stderr]).to.deep.equal([0, ''])
      const { protocolVersion, server, tools, ...others } = JSON.parse(stdout)
      expect(others).to.deep.equal({})
      return [protocolVersion, server.name, tools.length > 2]
    })
    expect(found.map(row => row.slice(1))).to.deep.equal(servers.map(([, , name]) => [name, true]))
    expect(found.map(([revision]) => revision)).to.deep.equal(servers.map(([, revision]) => revision))

    const calls = await Promise.all([
      ...[url, older, sse].map(address => run('call', address, 'greet', 'name=Ada')),
      ...[sdk.streamable, sdk.sse].map(address => run('call', address, 'add', 'a=1', 'b=2.5')),
    ])
    const hello = { code: 0, stdout: 'Hello, Ada!\n', stderr: '' }
    const sum = { code: 0, stdout: '{\n  "sum": 3.5\n}\n', stderr: '' }
    expect(calls).to.deep.equal([hello, hello, hello, sum, sum])
    expect(sdk.ended).to.have.length(2)
  })

  it('call prints the id of a failed request, and with --verbose of each request', async () => {
    const refuse = definePlugin({
      setup(host) {
        host.onCall((call, next) => {
          if (call.params['name'] === 'forbidden') throw new HostError('forbidden')
          return next()
        })
      },
    })
    const file = join(folder, 'access.log')
    const { host, url } = await startHost({
      toolsets: {
        all: [...journey, ...own, ...['forbidden', 'failing'].map(name => defineTool({ name, handler: fail }))],
      },
      routes: { '/mcp': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, 'access-log': { file }, refuse: refuse() },
    })
    const at = `${url}/mcp`
    const [forbidden, failing, quiet, verbose, nowhere] = await Promise.all([
      run('call', at, 'forbidden'),
      run('call', at, 'failing', '--json'),
      run('call', at, 'greet', 'name=Ada'),
      run('call', at, 'greet', 'name=Ada', '--verbose'),
      run('list', `${url}/nowhere`),
    ])
    await host.close({ grace: 0 })
    const lines = (await readFile(file, 'utf8')).split('\n').filter(line => line !== '')
    const requests = lines.map(line => JSON.parse(line) as Record<string, unknown>)
    const found = ({ stderr }: Ended) => {
      const id = /^request id: ([\da-f-]{36}) /m.exec(stderr)?.[1]
      const { name, status } = requests.find(({ requestId }) => requestId === id) ?? {}
      return name ?? status
    }
    expect(quiet.stderr).to.equal('')
    expect([forbidden, failing, verbose, nowhere].map(found)).to.deep.equal(['forbidden', 'failing', 'greet', 404])
    expect([forbidden, failing, verbose, nowhere].map(({ code }) => code)).to.deep.equal([1, 1, 0, 1])
  })

  it('list prints tools with their arguments, resources and prompts, and single kinds on request', async () => {
    const [all, prompts, none] = await Promise.all([
      run('list', sdk.streamable),
      run('list', url, '--prompts'),
      run('list', sdk.streamable, '--resources'),
    ])
    expect(all.stdout).to.equal(
      [
        'sdk-server 1.2.3, MCP 2025-11-25',
        '',
        'Tools',
        '  add a:number b:number  Adds two numbers.',
        '  fail',
        '  steps                  Takes three steps.',
        '',
        'Resources: none',
        '',
        'Prompts',
        '  greeting  Greets.',
        '',
      ].join('\n'),
    )
    expect(prompts.stdout).to.equal(
      'test-host 1.2.3, MCP 2026-07-28\n\nPrompts\n  summary topic  Asks for a summary.\n',
    )
    expect(none.stdout).to.match(/\n\nResources: none\n$/)
  })

  it('call takes arguments as name=value by the schema, as JSON, from a file and from stdin', async () => {
    const piped = startCli(['call', url, 'types', '-'], folder, env)
    piped.child.stdin.end('{"number": 4}')
    const ends = await Promise.all([
      run('call', url, 'types', '--json', 'text=12', 'number=-1.5', 'flag=true', 'list=[1,2]', 'any=a=b'),
      run('call', url, 'types', '{"number": 2}'),
      run('call', url, 'types', '@arguments.json'),
      piped.ended,
    ])
    expect(ends.map(({ code }) => code)).to.deep.equal([0, 0, 0, 0])
    const { structuredContent } = JSON.parse(ends[0]?.stdout ?? '')
    expect(structuredContent).to.deep.equal({ text: '12', number: -1.5, flag: true, list: [1, 2], any: 'a=b' })
    expect(ends.slice(1).map(({ stdout }) => JSON.parse(stdout).number)).to.deep.equal([2, 3, 4])
  })

  it('call reports invalid arguments, and exits 2', async () => {
    const cases = [
      [['number=x'], 'number must be of type number, not "x"'],
      [['list=1,b'], `list must be of type array, not "1,b"; example: 'list=["1","b"]'`],
      [['nmber=1'], 'the tool has no argument "nmber"; did you mean "number"?'],
      [['number'], '"number" is not an argument; write name=value for each, or one JSON object, @file or -'],
      [['{"a":'], 'the arguments are not JSON: '],
      [['@none.json'], 'the arguments cannot be read: ENOENT'],
      [['{}', 'a=1'], 'unexpected "a=1" after the JSON arguments'],
      [['--timeout', '0'], '--timeout must be a number of seconds, at most 86400'],
    ] as const
    const ends = await Promise.all(cases.map(([args]) => run('call', url, 'types', ...args)))
    ends.forEach(({ code, stdout, stderr }, index) => {
      expect(stderr.startsWith(`mcp-host: error MH3001: ${cases[index]?.[1]}`), stderr).to.equal(true)
      expect([code, stdout]).to.deep.equal([2, ''])
    })
  })

  it('call exits 1 if the tool fails, and prints its text or the whole result as JSON', async () => {
    const [text, json, wrong] = await Promise.all([
      run('call', sdk.streamable, 'fail'),
      run('call', url, 'fail', '--json'),
      run('call', url, 'greet'),
    ])
    expect(text).to.deep.equal({ code: 1, stdout: 'it broke\n', stderr: 'mcp-host: the tool fail failed\n' })
    expect([json.code, json.stderr]).to.deep.equal([1, ''])
    expect(JSON.parse(json.stdout)).to.deep.include({ isError: true })
    expect([wrong.code, wrong.stdout.includes('name')]).to.deep.equal([1, true])
  })

  it('call suggests the nearest tool name', async () => {
    const { code, stdout, stderr } = await run('call', url, 'great', 'name=Ada')
    expect([code, stdout]).to.deep.equal([1, ''])
    expect(stderr).to.match(/^mcp-host.*"great".*"greet"\?\n$/)
  })

  it('call calls a tool that requires tasks', async () => {
    const host = await startHost({
      toolsets: { all: [defineTool({ name: 'backup', task: 'required', handler: () => 'done' })] },
      routes: { '/mcp': { toolsets: 'all' } },
      plugins: { 'transport-streamable': {}, tasks: { pollInterval: '20ms' } },
    })
    expect(await run('call', `${host.url}/mcp`, 'backup')).to.include({ code: 0, stdout: 'done\n' })
  })

  it('call shows progress and log lines on stderr while it waits', async () => {
    const [ours, theirs] = await Promise.all([run('call', url, 'count'), run('call', sdk.streamable, 'steps')])
    expect([ours.code, ours.stdout]).to.deep.equal([0, 'counted\n'])
    const steps = ['1/3 (33 %)  step 1', '2/3 (66 %)  step 2', '3/3 (100 %)  step 3']
    expect(ours.stderr.trimEnd().split('\n').slice(0, 3)).to.deep.equal(steps)
    expect([theirs.stdout, theirs.stderr]).to.deep.equal(['done\n', `${steps.join('\n')}\n`])
  })

  it('call prints each kind of content block', async () => {
    const { stdout } = await run('call', url, 'blocks')
    expect(stdout).to.equal(
      'a text with \\u001b[31mcolor\\u001b[0m\nand two lines\n[image: image/png, 5 bytes; --json prints it]\n[resource: pages://1, page 1]\n',
    )
  })

  it('call declines requests of a server without a terminal', async () => {
    const ends = await Promise.all([url, older].map(address => run('call', address, 'survey')))
    for (const { code, stdout, stderr } of ends) {
      expect([code, JSON.parse(stdout)]).to.deep.equal([0, { action: 'decline', content: {} }])
      expect(stderr).to.match(/Who are you\?\nDeclined: .*terminal.*\n$/)
    }
  })

  it('Ctrl-C cancels the call at the server, and exits 130', async () => {
    const running = startCli(['call', url, 'wait'], folder, env)
    const aborted = once(waits, 'aborted')
    await once(waits, 'waiting')
    running.child.kill('SIGINT')
    await aborted
    expect(await running.ended).to.deep.equal({ code: 130, stdout: '', stderr: 'mcp-host: cancelled\n' })
  })

  it('--timeout ends a call without a response', async () => {
    const { code, stderr } = await run('call', url, 'wait', '--timeout', '0.3')
    expect(code).to.equal(1)
    expect(stderr).to.match(/^mcp-host: error \w+: .*--timeout <seconds>/)
  })

  it('report an invalid URL', async () => {
    const cases = [
      [`${url}/nope`, 1, /^mcp-host: error \w+: the server returned HTTP 404: .*; check the path of the URL\n$/],
      [
        'http://127.0.0.1:9999999/',
        2,
        /^mcp-host: error \w+: "http:\/\/127\.0\.0\.1:9999999\/" is not an http or https URL; /,
      ],
      ['clock', 2, /; give the complete URL of the server, such as https:\/\/example\.com\/mcp\n$/],
      [
        `${url.slice('http://'.length)}/nope`,
        1,
        /^mcp-host: error \w+: the server returned HTTP 404: Not found: nothing is served/,
      ],
    ] as const
    const ends = await Promise.all(cases.map(([address]) => run('list', address)))
    ends.forEach(({ code, stdout, stderr }, index) => {
      const [, expected, words] = cases[index] ?? ['', 0, /never/]
      expect(stderr).to.match(words)
      expect([code, stdout]).to.deep.equal([expected, ''])
    })
  })

  describe('at a terminal', () => {
    for (const [revision, address] of [
      ['2026-07-28', () => url],
      ['2025-11-25', () => older],
    ] as const) {
      it(`asks for each field until the value is valid (${revision})`, async () => {
        const { child, logged, ended } = startCli(['call', address(), 'survey', '--json'], folder, env, {
          terminal: true,
        })
        for (const [question, answer] of [
          [/The server asks: Who are you\?\s+Your name[\s\S]*name: $/, 'Ada'],
          [/age: $/, 'old'],
          [/expected a whole number[\s\S]*age: $/, '36'],
          [/1 {2}red\s+2 {2}green[\s\S]*color: $/, '2'],
          [/news \(y\/n\) \[false\]: $/, ''],
          [/Send this\? y \(yes\), n \(decline\), c \(dismiss without an answer\): $/, 'y'],
        ] as const) {
          // What readline puts behind its prompt moves the cursor.
          await logged(new RegExp(question.source.replace(/\$$/, '(?:\\x1b\\[\\d*[A-Z])*$')))
          child.stdin.write(`${answer}\r`)
        }
        const { code, stdout } = await ended
        expect(code, stdout).to.equal(0)
        const result = JSON.parse(stdout)
        expect(result.structuredContent).to.deep.equal({
          action: 'accept',
          content: { name: 'Ada', age: 36, color: 'green', news: false },
        })
      })
    }

    it('overwrites the progress line, and prints no control characters', async () => {
      const [count, blocks] = await Promise.all([
        runCli(['call', url, 'count'], folder, env, { terminal: true }),
        runCli(['call', url, 'blocks'], folder, env, { terminal: true }),
      ])
      expect(count.stderr).to.contain('\r\u001b[K3/3 (100 %)  step 3')
      expect(count.stdout).to.equal('counted\n')
      expect(blocks.stdout).to.contain('a text with \\u001b[31mcolor\\u001b[0m')
    })
  })
})
