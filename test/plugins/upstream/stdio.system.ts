// Tests upstream servers that are processes: sessions, environment, failures, restarts and their end.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { expect } from 'chai'
import { createHost, reloadHost } from '../../../core/create-host.ts'
import type { Clock } from '../../../core/http/clock.ts'
import { PATHS } from '../../../plugins/console/api.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { runCli } from '../../cli/in-process.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { callTool, questionsIn } from '../../fixtures/asking-client.ts'
import { bundledFile } from '../../support/compiled.ts'
import { eventually } from '../../support/eventually.ts'
import { isAlive } from '../../support/is-alive.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { createTestLog, type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { startConsole } from '../console/console-client.ts'
import { startMetered } from '../metrics/scrape.ts'

const SERVER = join(import.meta.dirname, 'support/stdio-server.mjs')
const COMMAND = [process.execPath, SERVER]

afterEach(stopHosts)

const started = (server: Partial<UpstreamOptions['servers'][string]> = {}, more: Partial<UpstreamOptions> = {}) =>
  startHost({
    toolsets: {},
    routes: { '/': { toolsets: 'counter' } },
    plugins: {
      'transport-streamable': {},
      upstream: { servers: { counter: { command: COMMAND, prefix: '', ...server } }, ...more },
    },
  })

const textOf = async (url: string, name: string) =>
  (await modern(url, 'tools/call', { name, arguments: {} })).message.result.content[0].text as string

const pidsAt = async (url: string) => (await textOf(url, 'pids')).split(' ').map(Number)
const logged = ({ log }: StartedHost, code: string) => log.filter(line => line.code === code)

describe('Upstream processes', () => {
  it('keep the state of a session, and share no state between client sessions', async () => {
    const { url } = await started()
    const clients = await Promise.all([openSession(url), openSession(url)])
    const counts: string[] = []
    for (const client of [...clients, ...clients]) {
      const { message } = await client.request('tools/call', { name: 'count', arguments: {} })
      counts.push(message.result.content[0].text)
    }
    expect(counts).to.deep.equal(['1', '1', '2', '2'])
    const pids = await Promise.all(
      clients.map(async client => {
        const { message } = await client.request('tools/call', { name: 'pids', arguments: {} })
        return message.result.content[0].text.split(' ').map(Number) as number[]
      }),
    )
    for (const client of clients) await client.end()
    await eventually('the processes and their children end', () => pids.flat().every(pid => !isAlive(pid)))
  })

  it('ask the client of a call', async () => {
    const { url } = await started()
    const { message } = await callTool(url, 'ask')
    expect(Object.values(questionsIn(message))).to.deep.equal(['Your name?'])
    const answers = { 'elicit-1': { action: 'accept', content: { name: 'Ada' } } }
    const { result } = (await callTool(url, 'ask', { state: message.result.requestState, answers })).message
    expect(result.content[0].text).to.equal('accept Ada')
  })

  it('get no other variables of the host', async () => {
    process.env['HOST_SECRET'] = 'secret'
    process.env['PASSED_ON'] = 'passed'
    const { url } = await started({ passEnv: ['PASSED_ON'], env: { OWN: '1' } })
    const names = (await textOf(url, 'environment')).split(' ')
    expect(names).to.include.members(['OWN', 'PASSED_ON', 'PATH']).and.not.include('HOST_SECRET')
    delete process.env['HOST_SECRET']
    delete process.env['PASSED_ON']
  })

  it('that end fail their calls only, and start again', async () => {
    const host = await started({ sessions: 'shared' })
    const dead = (await modern(host.url, 'tools/call', { name: 'die', arguments: {} })).message.result
    expect(dead.isError).to.equal(true)
    expect(dead.content[0].text).to.match(
      /connection to the server "counter" ended at 2\S+Z\. The call may have been executed/,
    )
    expect(logged(host, 'MH2942')[0]?.['reason']).to.match(/exit code 3.*dying as requested/s)
    const down = (await modern(host.url, 'tools/call', { name: 'count', arguments: {} })).message.result
    expect(down.content[0].text)
      .to.match(/unavailable since .*ended/)
      .and.not.match(/dying|node/)
    await eventually('the server runs again', async () => (await textOf(host.url, 'count')) === '1')
  })

  it('that end with the state of a session are reported, but not as errors of the connection of all callers', async () => {
    const { url, log, get } = await startConsole({
      toolsets: {},
      routes: { '/': { toolsets: 'counter' } },
      plugins: { upstream: { servers: { counter: { command: COMMAND, prefix: '' } } } },
    })
    await modern(url, 'tools/call', { name: 'die', arguments: {} })
    const lines = log.filter(({ code }) => code === 'MH2959' || code === 'MH2942')
    expect(lines.map(({ code }) => code)).to.deep.equal(['MH2959'])
    expect(lines[0]?.['reason']).to.match(/exit code 3.*dying as requested/s)
    const [row] = (await get(PATHS.upstreams)).body.servers
    expect(row).to.include({ state: 'up' }).and.not.have.property('lastError')
    const warnings = async () => JSON.stringify((await get(PATHS.overview)).body.warnings)
    expect(await warnings()).to.include('MH2959')
    expect(await textOf(url, 'count')).to.equal('1')
    expect(await warnings()).to.not.include('MH2959')
  })

  it('are not more than the limit when clients open and leave sessions', async () => {
    const { url } = await started({}, { processes: { max: 2 } })
    const running = () =>
      execFileSync('ps', ['-o', 'args=', '--ppid', String(process.pid)], { encoding: 'utf8' })
        .split('\n')
        .filter(line => line.includes(SERVER)).length
    let most = 0
    for (let count = 0; count < 5; count++) {
      const client = await openSession(url)
      const failed = client.request('tools/call', { name: 'count', arguments: {} }).catch(() => undefined)
      for (let turn = 0; turn < 20; turn++) await setImmediate()
      await client.end()
      await failed
      most = Math.max(most, running())
    }
    expect(most).to.be.at.most(3)
    expect(await textOf(url, 'count')).to.equal('1')
  })

  it('that exit immediately are reported by accept with their output', async () => {
    const env = { DESK_SECRET: 'hunter2-hunter2' }
    const print = "console.error('\\x1b[31mDATABASE_URL is not set for', process.env.DESK_SECRET)"
    const command = [process.execPath, '-e', `${print}; process.exit(1)`]
    const config = {
      server: { name: 'gateway', version: '1.0.0' },
      secrets: ['a secret for tests, long enough to be one'],
      routes: { '/': { toolsets: 'counter' } },
      plugins: { 'transport-streamable': {}, upstream: { servers: { counter: { command, env } } } },
    }
    const folder = await makeFolder({ 'mcp.config.json': JSON.stringify(config) })
    const { code, stderr } = await runCli(['accept'], folder)
    await removeFolders()
    expect(code).to.equal(2)
    expect(stderr)
      .to.match(/counter.*exit code 1.*it printed: .*DATABASE_URL is not set for \[redacted: DESK_SECRET\]/s)
      .and.to.not.include('\x1b')
  })

  it('that end at once are started once per attempt', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'upstream-'))
    const file = join(folder, 'starts')
    const script = `fs.appendFileSync(${JSON.stringify(file)}, '.'); process.exit(1)`
    const { one } = await startMetered({
      toolsets: {},
      routes: { '/': { toolsets: 'counter' } },
      plugins: {
        'transport-streamable': {},
        upstream: { servers: { counter: { command: [process.execPath, '-e', script] } } },
      },
    })
    const starts = () => readFileSync(file, 'utf8').length
    // The first attempt detects the protocol version, which takes a second start.
    const expected = async () => 2 + ((await one('mcp_host_upstream_reconnections_total')) ?? 0)
    await eventually('three attempts', async () => (await expected()) >= 5)
    await eventually('one start per attempt', async () => starts() === (await expected()))
    rmSync(folder, { recursive: true })
  })

  it('that cannot start are reported, and do not stop the host', async () => {
    const host = await started({ command: 'no-such-program-of-this-test' })
    expect(logged(host, 'MH2942')[0]?.['reason']).to.match(/no-such-program-of-this-test.*ENOENT/)
    const { error } = (await modern(host.url, 'tools/call', { name: 'count', arguments: {} })).message
    expect(error.code).to.equal(-32_602)
  })
})

describe('Upstream processes of a host that is killed', () => {
  let folder: string
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'upstream-'))
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    it(`by ${signal} end, with their children`, async () => {
      const config = join(folder, 'mcp.config.json')
      const servers = { counter: { command: COMMAND, prefix: '', sessions: 'shared' } }
      const plugins = { 'transport-streamable': {}, upstream: { servers } }
      const http = { port: 0 }
      const server = { name: 'a', version: '1.0.0' }
      writeFileSync(config, JSON.stringify({ server, http, routes: { '/': { toolsets: 'counter' } }, plugins }))
      const host = spawn(process.execPath, [bundledFile('cli/bin.ts'), 'start', '--config', config], { stdio: 'pipe' })
      let output = ''
      for (const stream of [host.stdout, host.stderr]) stream.on('data', chunk => (output += chunk))
      const url = await eventually('the host listens', () => /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0])
      const pids = await eventually('a tool runs', () => pidsAt(String(url)).catch(() => undefined))
      const ended = new Promise(resolve => host.once('exit', resolve))
      host.kill(signal)
      await ended
      await eventually('the processes end', () => (pids ?? []).every(pid => !isAlive(pid)))
    })
  }
})

describe('An upstream process whose program changes', () => {
  /** A host with a program that reads the description of its tool from a file. */
  async function setUp(clock: Clock | undefined, ...more: string[]) {
    const folder = await makeFolder({ 'text.txt': 'Counts.' })
    const setText = (text: string) => writeFileSync(join(folder, 'text.txt'), text)
    const configure = (...args: string[]) => {
      const command = [...COMMAND, join(folder, 'text.txt'), ...args]
      const config = {
        server: { name: 'gateway', version: '1.0.0' },
        http: { port: 0 },
        secrets: ['a secret for tests, long enough to be one'],
        routes: { '/': { toolsets: 'counter' } },
        plugins: {
          'transport-streamable': {},
          upstream: { servers: { counter: { command, prefix: '', ...(args.length > 0 && { sessions: 'shared' }) } } },
        },
      }
      writeFileSync(join(folder, 'mcp.config.json'), JSON.stringify(config))
      return config
    }
    const accept = async () => {
      configure()
      const { code, stderr } = await runCli(['accept'], folder)
      expect(code, stderr).to.equal(0)
      return configure(...more)
    }
    const log = createTestLog()
    const options = { directory: folder, log, ...(clock && { clock }) }
    const host = await createHost((await accept()) as never, options)
    hosts.push(host)
    await host.listen()
    const count = async () => {
      const { tools } = (await modern(host.url, 'tools/list')).message.result
      return tools.find(({ name }: { readonly name: string }) => name === 'count')?.description as string | undefined
    }
    const describe = () => host.inspect('/')?.explainPlugins().join() ?? ''
    const reload = () => reloadHost(host, { cwd: folder })
    return { url: host.url, log: log.lines, setText, accept, count, reload, describe }
  }
  const hosts: Array<{ close(options: { grace: number }): Promise<unknown> }> = []
  afterEach(() => Promise.all(hosts.splice(0).map(host => host.close({ grace: 0 }))))
  after(removeFolders)

  it('restarts at the reload after accept, and not at the next one', async () => {
    const { url, log, setText, accept, count, reload } = await setUp(undefined)
    const before = await pidsAt(url)
    setText('Counts up.')
    await accept()
    await reload()
    await eventually('a new process serves calls', async () => String(await pidsAt(url)) !== String(before))
    expect(await count()).to.equal('Counts up.')
    expect(log.filter(({ code }) => code === 'MH2945')).to.deep.equal([])
    const pids = await pidsAt(url)
    await reload()
    expect(await pidsAt(url)).to.deep.equal(pids)
  })

  it('restarts at the reload after the accepted version is installed', async () => {
    const { setText, accept, count, reload } = await setUp(undefined)
    setText('Counts up.')
    await accept()
    setText('Counts.')
    await reload()
    await eventually('the old version is withheld', async () => (await count()) === undefined)
    setText('Counts up.')
    await reload()
    await eventually('the accepted version is served', async () => (await count()) === 'Counts up.')
  })

  it('is withheld from new sessions, whose processes report another version', async () => {
    const { url, log, setText, accept, count, reload } = await setUp(undefined)
    setText('Counts up.|2.0.0')
    const clients = await Promise.all([openSession(url), openSession(url)])
    const call = async (name: string) => {
      const answers = await Promise.all(clients.map(one => one.request('tools/call', { name, arguments: {} })))
      return answers.map(({ message }) => message.result.content[0].text as string)
    }
    for (const text of await call('count')) expect(text).to.match(/has changed/)
    expect(await count()).to.equal(undefined)
    const codes = log.flatMap(({ code }) => (['MH2941', 'MH2942', 'MH2945'].includes(String(code)) ? [code] : []))
    expect(codes).to.deep.equal(['MH2941', 'MH2945', 'MH2941'])
    for (const text of await call('pids')) expect(text).to.match(/^\d+ \d+$/)
    await accept()
    await reload()
    expect(await call('count')).to.deep.equal(['1', '1'])
    expect(log.filter(({ code }) => code === 'MH2941')).to.have.length(2)
  })

  it('restarts once a minute at most if each process reports another version', async () => {
    const { url, log, setText } = await setUp(undefined)
    setText('Counts.|pid')
    for (const client of [await openSession(url), await openSession(url), await openSession(url)]) {
      const { message } = await client.request('tools/call', { name: 'count', arguments: {} })
      expect(message.result.content[0].text).to.equal('1')
    }
    expect(log.filter(({ code }) => code === 'MH2941')).to.have.length(2)
  })

  it('starts once the old process has released a shared resource', async () => {
    const clock = createManualClock()
    const { url, log, setText, accept, reload, describe } = await setUp(clock, `mcp-host-${process.pid}`)
    setText('Counts up.')
    await accept()
    await reload()
    let shown = ''
    for (const seconds of [1, 2, 4, 8]) {
      await eventually('another failure', () => describe() !== shown && describe().includes('down since'))
      shown = describe()
      await clock.advance(seconds * 1_000)
    }
    await eventually('the new process has failed too often', () => describe().includes('crash loop'))
    await clock.advance(60_000)
    await eventually('a new process serves calls', () => log.filter(({ code }) => code === 'MH2941').length === 2)
    expect(await textOf(url, 'count')).to.equal('1')
  })
})
