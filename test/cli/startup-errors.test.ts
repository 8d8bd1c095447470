// Tests failed startup: one clear message, an exit code by cause, and no stack.
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { createTestLog } from '../support/start-host.ts'
import { type ConfigParts, configText, type Ended, runCli, stopAll } from './in-process.ts'

const STACK = /^\s+at /m

after(removeFolders)
after(stopAll)

async function startWith(parts: ConfigParts, files: Record<string, string> = {}, args: string[] = []): Promise<Ended> {
  const folder = await makeFolder({ 'mcp.config.mjs': configText(parts), ...files })
  return runCli(['start', ...args], folder)
}

/** The one message, which is all that was said. */
function expectMessage({ code, stdout, stderr }: Ended, expectedCode: 1 | 2, message: string | RegExp) {
  expect(stderr).to.match(/^mcp-host: error \w+: /)
  expect(stderr.replace(/^mcp-host: error \w+: /, '').trimEnd()).to.match(
    typeof message === 'string' ? new RegExp(`^${message}$`) : message,
  )
  expect(stderr).not.to.match(STACK)
  expect(stdout).to.equal('')
  expect(code).to.equal(expectedCode)
}

const failing = (text: string) =>
  `const broken = definePlugin({ options: { type: 'object', additionalProperties: false, properties: {} }, ${text} })`

describe('mcp-host start on a busy port', () => {
  let busy: Server
  let port: number
  before(async () => {
    busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const address = busy.address()
    port = typeof address === 'object' && address !== null ? address.port : 0
  })
  after(() => void busy.close())

  it('names the port and the address, prints the fix, and exits 1', async () => {
    const ended = await startWith({ http: `{ port: ${port} }` })
    expectMessage(
      ended,
      1,
      `port ${port} of 127\\.0\\.0\\.1 is in use; set http\\.port or --port, or stop the program that uses it`,
    )
  })

  it('runs the closing tasks of plugins that were set up', async () => {
    const folder = await makeFolder({
      'mcp.config.mjs': configText({
        http: `{ port: ${port} }`,
        before: `import { writeFileSync } from 'node:fs'
${failing("setup(host) { host.onClose(() => writeFileSync(new URL('closed', import.meta.url), '')) }")}`,
        plugins: 'broken: broken()',
      }),
    })
    expect((await runCli(['start'], folder)).code).to.equal(1)
    expect(await readdir(folder)).to.include('closed')
  })
})

describe('mcp-host start at an address that it cannot listen on', () => {
  it('says that the machine does not have the address', async () => {
    const more = "host: '192.0.2.1', port: 0, publicUrl: 'https://a.example'"
    const ended = await startWith({ http: `{ ${more} }` })
    expect(ended.stderr).to.match(/MH1301: cannot listen on 192\.0\.2\.1:0: .*; this machine does not have the address/)
    const plugin = await startWith({
      plugins: "metrics: { host: '192.0.2.1', port: 0, token: 'a token of the metrics' }",
    })
    expect(plugin.stderr).to.match(/metrics.port: cannot listen on .*; this machine does not have the address/)
  })

  it('says how to use a port that requires a privilege', async function () {
    const { geteuid, seteuid } = process
    const start = '/proc/sys/net/ipv4/ip_unprivileged_port_start'
    if (!existsSync(start) || Number(readFileSync(start, 'utf8')) <= 1) this.skip()
    const host = await createHost(
      {
        server: { name: 'a', version: '1' },
        http: { port: 1 },
        toolsets: { a: [] },
        routes: { '/': { toolsets: 'a' } },
      },
      { log: createTestLog() },
    )
    const isRoot = geteuid?.() === 0
    if (isRoot) seteuid?.(65_534)
    const failed = rejectionOf(host.listen())
    try {
      expect(String(await failed)).to.match(/cannot listen on 127\.0\.0\.1:1: .*1024.*CAP_NET_BIND_SERVICE/)
    } finally {
      if (isRoot) seteuid?.(0)
    }
  })
})

describe('mcp-host start without a readable config', () => {
  it('prints the searched paths and the file to create, and exits 2', async () => {
    const folder = await makeFolder({})
    const ended = await runCli(['start'], folder)
    expectMessage(ended, 2, /Create mcp\.config\.ts/)
    expect(ended.stderr).to.include(folder)
  })

  it('reports that the file of --config does not exist', async () => {
    const ended = await runCli(['start', '--config', 'other.json'], await makeFolder({}))
    expectMessage(ended, 2, 'other\\.json.*--config')
  })

  it('reports that the config cannot be read', async () => {
    const folder = await makeFolder({})
    await mkdir(join(folder, 'a.json'))
    expectMessage(await runCli(['start', '-c', 'a.json'], folder), 2, /^a\.json: cannot be read: EISDIR.*$/)
  })

  it('names the line of a config that is not valid JSON', async () => {
    const folder = await makeFolder({ 'mcp.config.json': '{\n  "server": {},\n  oops\n}' })
    expectMessage(await runCli(['start'], folder), 2, /^mcp\.config\.json:3.*JSON/)
  })

  it('names the line at which a config throws', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': "\nthrow new Error('no such host')\n" })
    expectMessage(await runCli(['start'], folder), 2, 'mcp\\.config\\.mjs:2: cannot be loaded: no such host')
  })
})

describe('mcp-host start with errors in the config', () => {
  it('reports each error with line, key, found and expected value, and exits 2', async () => {
    const config = [
      'server:',
      '  name: a',
      'http:',
      '  prot: 3000',
      'toolsets:',
      '  a: ./a.mjs',
      'routes:',
      '  /:',
      '    toolsets: a',
      'plugins:',
      '  health:',
      '    path: 7',
    ].join('\n')
    const ended = await runCli(['start'], await makeFolder({ 'mcp.config.yaml': config }))
    expectMessage(ended, 2, /4 problems\./)
    const [, ...problems] = ended.stderr.trimEnd().split('\n\n')
    expect(problems).to.have.lengthOf(4)
    expect(problems[0]).to.match(/^mcp\.config\.yaml:1 {2}server\.version\n {2}MH1012 missing\n/)
    expect(problems[1]).to.match(
      /^mcp\.config\.yaml:4 {2}http\.prot\n {2}MH1011 unknown option; did you mean "port"\?\n/,
    )
    expect(problems[2]).to.match(/^mcp\.config\.yaml:6: MH1101 toolsets\.a.*\S*a\.mjs/)
    expect(problems[3]).to.match(
      /^mcp\.config\.yaml:12 {2}plugins\.health\.path\n {2}MH1013 wrong value\n {2}found 7; expected a path that starts with '\/' or false$/,
    )
  })

  it('names a route whose authorization no plugin can decide', async () => {
    const ended = await startWith({ routes: "{ '/': { toolsets: ['first'], authorize: true } }" })
    expectMessage(ended, 2, /^mcp\.config\.mjs:\d+: routes\['\/'\]\.authorize/)
  })
})

describe('mcp-host start with code that throws', () => {
  it('names the plugin that throws during setup, and exits 1', async () => {
    const ended = await startWith({
      before: failing("setup() { throw new Error('the disk is full') }"),
      plugins: 'broken: broken()',
    })
    expectMessage(ended, 1, /^mcp\.config\.mjs:\d+: plugins\.broken.*the disk is full$/)
  })

  it('names the plugin whose starting task rejects, and exits 1', async () => {
    const ended = await startWith({
      before: failing("setup(host) { host.onStart(async () => { throw new Error('no connection') }) }"),
      plugins: 'broken: broken()',
    })
    expectMessage(ended, 1, 'mcp\\.config\\.mjs:9: plugins\\.broken failed to start: no connection')
  })

  it('names the toolset and the file of a module that throws, and exits 2', async () => {
    const files = { 'tools.mjs': "throw new Error('no key')" }
    const ended = await startWith({ tool: "'./tools.mjs'" }, files)
    expectMessage(ended, 2, /^tools\.mjs:1: toolsets\.second\[0\] cannot be loaded: no key$/)
  })

  it('names a local plugin whose module throws, and exits 2', async () => {
    const files = { 'audit.mjs': "throw new Error('no audit today')" }
    const ended = await startWith({ plugins: "'./audit.mjs': {}" }, files)
    expectMessage(ended, 2, /^audit\.mjs:1: plugins\['\.\/audit\.mjs'\] cannot be loaded: no audit today$/)
  })

  it('prints the stack of the error with --verbose', async () => {
    const files = { 'tools.mjs': "throw new Error('no key')" }
    const { stderr, code } = await startWith({ tool: "'./tools.mjs'" }, files, ['--verbose'])
    expect(stderr).to.match(STACK)
    expect(stderr).to.match(/Error: no key\n\s+at .*tools\.mjs:1/)
    expect(code).to.equal(2)
  })
})
