// Tests config reload at run time: sessions, streams and running calls continue, and affected clients are notified
// once.

import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { errorText, StartError } from '../../core/plugin.ts'
import { removeFolders } from '../config/folder.ts'
import { accepted, callTool } from '../fixtures/asking-client.ts'
import { eventually } from '../support/eventually.ts'
import { openSocket, parseAnswer, readToEnd, requestBytes } from '../support/raw-http.ts'
import { type ReloadingHost, readNotifications, startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern, modernRequest, type RpcMessage } from '../support/rpc.ts'
import { listen, openSession, type SessionClient } from '../support/session-client.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { caseCount } from '../support/thorough.ts'

after(async () => {
  await stopReloading()
  await removeFolders()
})

const TOOLS = `import { definePrompt, defineTool } from HERE
import { word } from './word.ts'
export const say = defineTool({ name: 'say', handler: () => word })
export const open = definePrompt({ name: 'open', handler: () => 'open' })
`

const CONFIG = `import { defineConfig, defineTool } from HERE
import { count } from './count.ts'
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0', instructions: 'first' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: {
    talk: './tools/*.ts',
    other: [defineTool({ name: 'other', access: 'special', handler: () => String(count.calls++) })],
  },
  routes: { '/': { toolsets: ['talk'] }, '/both': { toolsets: ['talk', 'other'] }, '/t/:category': { toolsets: ':category' } },
  plugins: { 'transport-streamable': {}, 'tool-policy': { policies: { special: { scope: 'special' } } }, './plugins/own.ts': { word: 'a' } },
})
`

const OWN = `import { definePlugin } from HERE
import { text } from './text.ts'
export default definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { word: { type: 'string' } } },
  setup(host, { word }) { host.endpoint('/own', { methods: { GET: ctx => { ctx.body = text + word } } }) },
})
`

const SHAKY = `import { definePlugin } from HERE
export default definePlugin({
  options: { type: 'object', additionalProperties: false, properties: { word: { type: 'string' } } },
  setup(host) {
    host.onReload(({ word }: { word?: string }) => () => { if (word === 'bad') throw new Error('cannot take that') })
  },
})
`

const FILES = {
  'mcp.config.ts': CONFIG,
  'count.ts': 'export const count: { calls: number } = { calls: 0 }',
  'tools/say.ts': TOOLS,
  'tools/word.ts':
    "import { defineTool } from HERE\nexport const word: string = 'one'\nexport const dot = defineTool({ name: 'dot', handler: () => '.' })",
  'plugins/own.ts': OWN,
  'plugins/text.ts': "export const text: string = 'own '",
}

const TOOLS_CHANGED = 'notifications/tools/list_changed'
const textOf = ({ result }: RpcMessage): string => result.content[0].text
const namesIn = ({ result }: RpcMessage): string[] => result.tools.map((tool: { name: string }) => tool.name)

interface Clients {
  readonly session: SessionClient
  readonly stream: StreamExchange
  readonly listening: StreamExchange
  /** A session at the address that serves both toolsets. */
  readonly both: SessionClient
  readonly bothStream: StreamExchange
}

async function openClients(url: string): Promise<Clients> {
  const session = await openSession(url)
  const both = await openSession(`${url}/both`)
  const listening = await listen(url, { toolsListChanged: true, promptsListChanged: true })
  await listening.next()
  return { session, stream: await session.get(), listening, both, bothStream: await both.get() }
}

const say = async ({ session }: Clients) => textOf((await session.request('tools/call', { name: 'say' })).message)

describe('config reload', () => {
  let served: ReloadingHost
  let clients: Clients
  const hear = () => readNotifications(served.host, clients.stream, clients.listening, clients.bothStream)

  beforeEach(async () => {
    served = await startReloading(FILES)
    clients = await openClients(served.url)
  })

  async function reload(expected: { taken: string[]; told: number }, each: string[][]) {
    const report = await served.reload()
    expect(report).to.deep.equal({ restart: [], ...expected })
    expect(await hear()).to.deep.equal(each)
  }

  it('reloads modules that a handler imports without notifying clients', async () => {
    expect(await say(clients)).to.equal('one')
    await served.edit('tools/word.ts', "'one'", "'two'")
    await reload({ taken: ['toolsets.talk'], told: 0 }, [[], [], []])
    expect(await say(clients)).to.equal('two')
    await reload({ taken: [], told: 0 }, [[], [], []])
  })

  it('applies to a request whose body arrives after the reload', async () => {
    const { headers, body } = modernRequest('tools/call', { name: 'say' })
    const options = { path: '/both', headers: { ...headers, Expect: '100-continue' } }
    const bytes = requestBytes(served.url, body, options)
    const headEnd = bytes.indexOf('\r\n\r\n') + 4
    const socket = await openSocket(served.url)
    socket.write(bytes.subarray(0, headEnd))
    const [answer] = await once(socket, 'data')
    expect(String(answer)).to.match(/^HTTP\/1\.1 100 /)
    await served.edit('mcp.config.ts', "toolsets: ['talk', 'other']", "toolsets: ['other']")
    await served.reload()
    socket.write(bytes.subarray(headEnd))
    const { message } = parseAnswer(await readToEnd(socket))
    expect(message.error).to.include({ code: -32602 })
  })

  it('applies added, changed and removed tools', async () => {
    const one = [TOOLS_CHANGED]
    await served.write(
      'tools/new.ts',
      "import { defineTool } from HERE\nexport const fresh = defineTool({ name: 'fresh', handler: () => 'fresh' })",
    )
    await reload({ taken: ['toolsets.talk'], told: 3 }, [one, one, one])
    const { message } = await clients.session.request('tools/list')
    expect(namesIn(message)).to.deep.equal(['dot', 'fresh', 'say'])
    await served.edit('tools/new.ts', "name: 'fresh'", "name: 'fresh', description: 'A fresh one.'")
    await reload({ taken: ['toolsets.talk'], told: 3 }, [one, one, one])
    await served.edit(
      'tools/new.ts',
      'export const fresh',
      "export const kept = defineTool({ name: 'kept', handler: () => 1 })\nconst gone",
    )
    await reload({ taken: ['toolsets.talk'], told: 3 }, [one, one, one])
    expect(namesIn((await clients.session.request('tools/list')).message)).to.deep.equal(['dot', 'kept', 'say'])
    expect((await clients.session.request('tools/call', { name: 'fresh' })).message.error.code).to.equal(-32602)
  })

  it('applies changed toolsets of a route and notifies only its sessions', async () => {
    await served.edit('mcp.config.ts', "'/': { toolsets: ['talk'] }", "'/': { toolsets: ['talk', 'more'] }")
    await served.edit(
      'mcp.config.ts',
      'other: [',
      "more: [defineTool({ name: 'more', handler: () => 'more' })],\n    other: [",
    )
    await reload({ taken: ["routes['/'].toolsets", 'toolsets.more'], told: 2 }, [[TOOLS_CHANGED], [TOOLS_CHANGED], []])
    expect(textOf((await clients.session.request('tools/call', { name: 'more' })).message)).to.equal('more')
    expect(namesIn((await modern(`${served.url}/t/more`, 'tools/list')).message)).to.deep.equal(['more'])
    await served.edit('mcp.config.ts', "'talk', 'more'", "'talk', 'extra'")
    await served.edit('mcp.config.ts', 'more: [', 'extra: [')
    const taken = ["routes['/'].toolsets", 'toolsets.more', 'toolsets.extra']
    await reload({ taken, told: 0 }, [[], [], []])
    const gone = await modern(`${served.url}/t/more`, 'tools/list')
    expect(gone.status).to.equal(404)
    expect(gone.text).to.include('available at /t/:category: talk, extra, other"')
  })

  it('applies changed policies, notifies affected callers and enforces them', async () => {
    expect((await clients.both.request('tools/call', { name: 'other' })).status).to.equal(401)
    await served.edit('mcp.config.ts', "'tool-policy': {", "'tool-policy': { rules: { 'say': 'special' },")
    await reload({ taken: ["plugins['tool-policy']"], told: 3 }, [[TOOLS_CHANGED], [TOOLS_CHANGED], [TOOLS_CHANGED]])
    expect((await clients.session.request('tools/call', { name: 'say' })).status).to.equal(401)
    expect(namesIn((await clients.session.request('tools/list')).message)).to.deep.equal(['dot'])
    await served.edit('mcp.config.ts', "rules: { 'say': 'special' },", '')
    await reload({ taken: ["plugins['tool-policy']"], told: 3 }, [[TOOLS_CHANGED], [TOOLS_CHANGED], [TOOLS_CHANGED]])
    expect(await say(clients)).to.equal('one')
  })

  it('logs only the warnings that the previous version did not have', async () => {
    const warned = () => served.log.filter(({ level }) => level === 'warn')
    const before = warned().length
    await served.edit('tools/say.ts', "name: 'say',", "name: 'say', access: 'odd.write',")
    await served.reload()
    const news = () => warned().slice(before)
    const found = news().map(({ file, line, message }) => [file, line, message?.split(' it is hidden')[0]])
    const what = 'tool "say" requires "odd.write", which is not a policy, scope or role of the config: on '
    const file = join(served.folder, 'tools/say.ts')
    expect(found).to.deep.equal([
      [file, 3, `${what}/`],
      [file, 3, `${what}/both`],
      [file, 3, `${what}/t/:category`],
    ])
    await served.edit('tools/say.ts', 'export const say', '\nexport const say')
    await served.reload()
    expect(news()).to.have.length(3)
  })

  it('applies server info and configureSession to new sessions', async () => {
    await served.edit('mcp.config.ts', "'first'", "'second'")
    await served.edit(
      'mcp.config.ts',
      'toolsets: {',
      "configureSession(_, session) { session.removeToolset('other') },\n  toolsets: {",
    )
    const report = await served.reload()
    expect(report).to.deep.equal({ restart: [], taken: ['server', 'configureSession'], told: 0 })
    const { initialized, request } = await openSession(`${served.url}/both`)
    expect(initialized.message.result.instructions).to.equal('second')
    expect(namesIn((await request('tools/list')).message)).to.deep.equal(['dot', 'say'])
  })

  it('keeps unchanged modules and their state', async () => {
    await served.edit('mcp.config.ts', " access: 'special',", '')
    await served.reload()
    const call = async () => textOf((await clients.both.request('tools/call', { name: 'other' })).message)
    expect([await call(), await call()]).to.deep.equal(['0', '1'])
    await served.edit('tools/word.ts', "'one'", "'two'")
    await served.reload()
    expect(await call()).to.equal('2')
  })

  it('keeps tools changed at run time and rejects a duplicate name', async () => {
    const { defineTool } = await import('../../core/index.ts')
    served.host.runtime.tools.add(defineTool({ name: 'added', handler: () => 'added' }), { toolset: 'talk' })
    served.host.runtime.tools.remove('dot', { toolset: 'talk' })
    await served.edit('tools/word.ts', "'one'", "'two'")
    await served.reload()
    expect(namesIn((await modern(served.url, 'tools/list')).message)).to.deep.equal(['added', 'say'])
    await served.edit('tools/say.ts', "name: 'say'", "name: 'added'")
    const error = await served.reload().catch((thrown: unknown) => thrown)
    expect(errorText(error)).to.match(/"added".*"talk"/)
    expect(await say(clients)).to.equal('two')
  })
})

describe('config reload: plugins and secrets', () => {
  it('completes for the rest when a plugin rejects its new options, and retries them next time', async () => {
    const { url, host, log, edit, reload } = await startReloading({
      ...FILES,
      'mcp.config.ts': CONFIG.replace("'./plugins/own.ts': {", "'./plugins/shaky.ts': {"),
      'plugins/shaky.ts': SHAKY,
    })
    const stream = await (await openSession(url)).get()
    await edit('mcp.config.ts', "word: 'a'", "word: 'bad'")
    await edit('tools/word.ts', "'one'", "'two'")
    expect(await reload()).to.deep.equal({ restart: [], taken: ['toolsets.talk'], told: 0 })
    const failed = log.filter(({ code }) => code === 'MH1512')
    expect(failed.map(({ plugin }) => plugin)).to.deep.equal(["plugins['./plugins/shaky.ts']"])
    await edit('mcp.config.ts', "word: 'bad'", "word: 'good'")
    expect((await reload()).taken).to.deep.equal(["plugins['./plugins/shaky.ts']"])
    expect(await readNotifications(host, stream)).to.deep.equal([[]])
  })

  it('reports changed MCP_HOST_SECRETS as requiring a restart', async () => {
    const without = { ...FILES, 'mcp.config.ts': CONFIG.replace(/ {2}secrets: .*\n/, '') }
    const before = process.env['MCP_HOST_SECRETS']
    try {
      process.env['MCP_HOST_SECRETS'] = 'a'.repeat(40)
      const { edit, reload } = await startReloading(without)
      expect((await reload()).restart).to.deep.equal([])
      process.env['MCP_HOST_SECRETS'] = `${'b'.repeat(40)},${'a'.repeat(40)}`
      expect((await reload()).restart).to.deep.equal(['MCP_HOST_SECRETS'])
      delete process.env['MCP_HOST_SECRETS']
      expect((await reload()).restart).to.deep.equal(['MCP_HOST_SECRETS'])
      await edit('mcp.config.ts', 'http: {', `secrets: ['${'c'.repeat(40)}'], http: {`)
      expect((await reload()).restart).to.deep.equal(['secrets'])
      const { reload: again } = await startReloading(without)
      expect((await again()).restart).to.deep.equal([])
    } finally {
      if (before === undefined) delete process.env['MCP_HOST_SECRETS']
      else process.env['MCP_HOST_SECRETS'] = before
    }
  })
})

describe('config reload: errors', () => {
  let served: ReloadingHost
  let clients: Clients
  before(async () => {
    served = await startReloading(FILES)
    clients = await openClients(served.url)
  })

  const BROKEN: ReadonlyArray<readonly [what: string, file: string, before: string, after: string, says: RegExp]> = [
    ['a config with a syntax error', 'mcp.config.ts', 'export default', 'export defalt', /mcp\.config\.ts:3: /],
    [
      'a config with invalid values',
      'mcp.config.ts',
      'port: 0',
      "prot: 0, port: 'x'",
      /mcp\.config\.ts:5 {2}http\.prot/,
    ],
    ['an unknown toolset', 'mcp.config.ts', "['talk', 'other']", "['talk', 'ohter']", /there is no toolset "ohter"/],
    ['a tool with a syntax error', 'tools/word.ts', "'one'", "'one", /tools\/word\.ts/],
    ['a module that throws', 'tools/word.ts', "'one'", 'String(null!.x)', /tools\/(say|word)\.ts/],
    ['a duplicate tool name', 'tools/say.ts', "name: 'say'", "name: 'dot'", /"dot"/],
    ['an unknown key of a tool', 'tools/say.ts', "name: 'say',", "name: 'say', acess: 'x',", /say\.ts:3 {2}acess/],
    ['an unknown plugin option', 'mcp.config.ts', "word: 'a'", 'wrod: 1', /wrod/],
    [
      'an unknown policy',
      'mcp.config.ts',
      "'tool-policy': {",
      "'tool-policy': { rules: { '*': 'specail' },",
      /did you mean "special"/,
    ],
    ['a plugin with a syntax error', 'plugins/text.ts', "'own '", "'own ", /plugins\['\.\/plugins\/own\.ts'\]/],
  ]
  for (const [what, file, before, after, says] of BROKEN) {
    it(`rejects ${what}, and keeps the previous version`, async () => {
      await served.edit(file, before, after)
      const error = await served.reload().catch((thrown: unknown) => thrown)
      // Before the assertions: the next test uses the same files.
      await served.edit(file, after, before)
      expect(error).to.be.instanceOf(StartError)
      expect(errorText(error)).to.match(says)
      expect(await say(clients)).to.equal('one')
    })
  }

  it('succeeds after the fixes', async () => {
    // A plugin file that changed and changed back is loaded as a new module.
    expect(await served.reload()).to.deep.include({ taken: [], restart: ["plugins['./plugins/own.ts'] (its module)"] })
    const streams = [clients.stream, clients.listening, clients.bothStream]
    expect(await readNotifications(served.host, ...streams)).to.deep.equal([[], [], []])
  })
})

describe('config reload: restarts', () => {
  let served: ReloadingHost
  let clients: Clients
  before(async () => {
    served = await startReloading(FILES)
    clients = await openClients(served.url)
  })

  const RESTART: ReadonlyArray<readonly [file: string, before: string, after: string, keys: string[]]> = [
    ['mcp.config.ts', 'port: 0', "port: 0, keepAliveTimeout: '7s'", ['http.keepAliveTimeout']],
    ['mcp.config.ts', 'a secret for tests, long', 'another secret for tests, long', ['secrets[0]']],
    [
      'mcp.config.ts',
      "'/': { toolsets",
      "'/new': { toolsets: 'talk' }, '/': { stateless: true, toolsets",
      ["routes['/'].stateless", "routes['/new']"],
    ],
    ['mcp.config.ts', "word: 'a'", "word: 'b'", ["plugins['./plugins/own.ts'].word"]],
    ['mcp.config.ts', "'transport-streamable': {},", "'transport-streamable': {}, health: {},", ['plugins.health']],
    ['mcp.config.ts', "'tool-policy': {", "'tool-policy': { mode: 'shadow',", ["plugins['tool-policy'].mode"]],
    ['plugins/text.ts', "'own '", "'other '", ["plugins['./plugins/own.ts'] (its module)"]],
  ]
  for (const [index, [file, before, after, keys]] of RESTART.entries()) {
    const [old, next] = index % 2 === 0 ? ['one', 'two'] : ['two', 'one']
    it(`reports settings that require a restart and applies nothing: ${keys.join(', ')}`, async () => {
      await served.edit(file, before, after)
      await served.edit('tools/word.ts', `'${old}'`, `'${next}'`)
      const report = await served.reload()
      expect([...report.restart].sort()).to.deep.equal([...keys].sort())
      expect(report).to.include({ told: 0 })
      expect(report.taken).to.deep.equal([])
      expect(await say(clients)).to.equal(old)
      await served.edit(file, after, before)
      // This case is the last one, because the changed plugin file is loaded as a new module in later reloads.
      if (file.startsWith('plugins')) return
      expect((await served.reload()).taken).to.deep.equal(['toolsets.talk'])
      expect(await say(clients)).to.equal(next)
    })
  }
})

const RELOADS = caseCount(3, 2)
const CALLERS = caseCount(20, 8)

describe('config reload: running calls', () => {
  const ASKING = `import { defineTool } from HERE
const running = new Map<string, () => void>()
export const wait = defineTool({
  name: 'wait',
  input: { type: 'object', properties: { name: { type: 'string' } } },
  async handler({ name = '' }) {
    await new Promise<void>(resolve => running.set(name, resolve))
    return 'waited v1'
  },
})
export const go = defineTool({ name: 'go', handler: () => { for (const end of running.values()) end(); return running.size } })
`
  const ASKS = `import { defineTool } from HERE
export const ask = defineTool({
  name: 'ask',
  async handler(_, { elicit }) {
    const answer = await elicit({ message: 'v1?', requestedSchema: { type: 'object', properties: {} } })
    return 'v1 ' + answer.action
  },
})
`
  const PLAIN = `import { defineTool } from HERE
export const say = defineTool({ name: 'say', handler: async () => { await new Promise(setImmediate); return '0' } })
`
  const CONFIG = `export default {
  server: { name: 'reloaded', version: '1.0.0' },
  // A reload on a busy machine can take longer than the default: the host would close connections that \`fetch\` uses again.
  http: { port: 0, keepAliveTimeout: '10m' },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { wait: './wait.ts', ask: './ask.ts', say: './say.ts' },
  routes: { '/': { toolsets: ['wait', 'ask', 'say'] } }, plugins: { 'transport-streamable': {} },
}`
  const files = { 'mcp.config.ts': CONFIG, 'wait.ts': ASKING, 'ask.ts': ASKS, 'say.ts': PLAIN }

  it('complete with the definition that they started with', async () => {
    const { url, edit, reload } = await startReloading(files)
    const session = await openSession(url)
    const running = session.request('tools/call', { name: 'wait', arguments: { name: 'a' } })
    const modernly = modern(url, 'tools/call', { name: 'wait', arguments: { name: 'b' } })
    const count = async () => (await modern(url, 'tools/call', { name: 'go' })).message.result.content[0].text
    await session.request('ping')
    await edit('say.ts', "'0'", "'1'")
    await reload()
    await eventually('both calls run', count, running => running === '2')
    expect([(await running).message, (await modernly).message].map(textOf)).to.deep.equal(['waited v1', 'waited v1'])
  })

  it('reject elicitation results for a changed definition and request them again', async () => {
    const { url, edit, reload } = await startReloading(files)
    const state = (await callTool(url, 'ask')).message.result.requestState
    await edit('ask.ts', "'v1 '", "'v2 '")
    await reload()
    const answers = { 'elicit-1': accepted({}) }
    const { error } = (await callTool(url, 'ask', { state, answers })).message
    expect(error.code).to.equal(-32602)
    const again = (await callTool(url, 'ask')).message.result.requestState
    expect(textOf((await callTool(url, 'ask', { state: again, answers })).message)).to.equal('v2 accept')
  })

  /** What does not end is named, before the test's own time is over. */
  async function inTime<Value>(what: string, task: Promise<Value>): Promise<Value> {
    const over = new AbortController()
    const late = pause(60_000, undefined, { signal: over.signal }).then(() =>
      Promise.reject(new Error(`it hangs: ${what}`)),
    )
    try {
      return await Promise.race([task, late])
    } finally {
      over.abort()
      late.catch(() => undefined)
    }
  }

  it(`completes every call of ${CALLERS} callers during ${RELOADS} reloads`, async () => {
    const { url, write, reload } = await startReloading(files)
    const session = await openSession(url)
    const answers = new Map<string, number>()
    let failed = 0
    let begun = 0
    /** So many, one after the other: without an end they would leave the reload, in the same process, little of the time. */
    async function callOn(index: number, version: number) {
      for (let count = 0; count < 5; count++) {
        begun++
        const isSession = index % 2 === 0
        const call: Promise<{ readonly status: number; readonly message: RpcMessage }> = isSession
          ? session.request('tools/call', { name: 'say' })
          : modern(url, 'tools/call', { name: 'say' })
        const { status, message } = await inTime(`call ${count} of caller ${index} at reload ${version}`, call)
        if (status !== 200 || message?.result?.isError === true || message?.error) failed++
        const text = message?.result ? textOf(message) : JSON.stringify(message)
        answers.set(text, (answers.get(text) ?? 0) + 1)
      }
    }
    for (let version = 1; version <= RELOADS; version++) {
      await write('say.ts', PLAIN.replace("'0'", `'${version}'`))
      const callers = Array.from({ length: CALLERS }, (_, index) => callOn(index, version))
      const reloaded = await inTime(`reload ${version}`, reload())
      expect(reloaded.taken).to.deep.equal(['toolsets.say'])
      await Promise.all(callers)
    }
    const ended = [...answers.values()].reduce((sum, count) => sum + count, 0)
    expect({ lost: begun - ended, failed }).to.deep.equal({ lost: 0, failed: 0 })
    expect(textOf((await session.request('tools/call', { name: 'say' })).message)).to.equal(String(RELOADS))
  })
})
