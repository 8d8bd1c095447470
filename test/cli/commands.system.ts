// Runs each command once as a process: exit code and output. The other tests of commands run in process.
import { readdir, readFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { makeCertificate, startTrusting } from '../plugins/dev-auth-server/certificate.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { startBadProxy, stopProxies } from './bad-proxy.ts'
import { needsTerminals, startInTerminal } from './in-terminal.ts'
import { startDesk, stopDesks } from './login-setup.ts'
import { callLine } from './report/log-lines.ts'
import { configText, startCli, stopAll } from './run-cli.ts'

/** Commands that keep stdout for their own output. */
const LOADS_CONFIG = new Set<string | undefined>(['check', 'explain', 'lock', 'diff'])

describe('each command as a process', () => {
  let folder: string
  let url: string

  before(async () => {
    const echo = defineTool({ name: 'echo', handler: () => 'echoed' })
    const options = { toolsets: { all: [echo] }, routes: { '/mcp': { toolsets: 'all' } } }
    url = `${(await startHost({ ...options, plugins: { 'transport-streamable': {}, tasks: {} } })).url}/mcp`
    folder = await makeFolder({
      'mcp.config.mjs': configText({
        before: 'console.log("[banner] injecting env"); process.stdout.write("[banner] more\\n")',
        http: '{ port: Number(process.env.TEST_PORT ?? 0) }',
        plugins: 'audit: {}',
      }),
      'test.env': 'TEST_PORT=none\n',
    })
  })
  after(async () => {
    await stopAll()
    await stopDesks()
    await stopProxies()
    await stopHosts()
    await removeFolders()
  })

  const run = (args: readonly string[], input = '') => {
    const words = args.map(arg => (arg === 'URL' ? url : arg))
    const running = startCli(words, folder, {
      MCP_HOST_HOME: folder,
      MCP_HOST_SECRETS: '',
      BROWSER: '/no/such/program',
    })
    running.child.stdin.on('error', () => undefined).end(input)
    return running.ended
  }

  for (const [args, code, output, input] of [
    [['--version'], 0, /^\d+\.\d+\.\d+/],
    [['strat'], 2, /^mcp-host: error \w+: unknown command "strat"; did you mean "start"\?/],
    [['check'], 0, /^config mcp\.config\.mjs\n[\s\S]*The config is valid\.\n$/],
    [
      ['check', '--env-file', 'test.env'],
      2,
      /^mcp-host: error \w+: The config has a problem\.\n\nmcp\.config\.mjs:\d+ {2}http\.port/m,
    ],
    [['explain'], 0, /^address +\/, route \/, /],
    [['lock'], 0, /^mcp\.lock\.json: 1 address, 2 tools\n$/],
    [['diff'], 0, /^mcp\.lock\.json and mcp\.config\.mjs are equal\.\n$/],
    [['diff', '-'], 2, /^mcp-host: error \w+: stdin is not JSON/m, 'none'],
    [['schema'], 0, /^\{[\s\S]*"transport-streamable"/],
    [['audit', 'verify', 'gone.jsonl'], 2, /^mcp-host: error \w+: gone\.jsonl: there is no such file/],
    [['init', 'made', '--yes'], 0, /Created made in made/],
    [['add', 'tool', 'one'], 0, /^created \S*one\./m],
    [['report', '-', '--json'], 0, /"calls": 1,/, callLine('2026-11-20T10:00:00.000Z')],
    [['tasks', 'URL', '--header', 'X-User: ann'], 0, /^no tasks; /],
    [['list', 'URL'], 0, /\n\nTools\n {2}echo\n/],
    [['call', 'URL', 'echo'], 0, /^echoed\n$/],
    [['connect', 'claude-code', 'URL'], 0, /^claude mcp add --transport http /],
    [['login', 'URL'], 0, / does not require a login\n/],
    [['logout', '--all'], 0, /^there were no logins\n$/],
    [['status', 'URL'], 1, /^no login at /],
    [['token', 'URL'], 1, /^mcp-host: error \w+: there is no login at /],
    [['doctor', 'URL', '--json'], 0, /"healthy": true/],
  ] as ReadonlyArray<readonly [readonly string[], number, RegExp, string?]>) {
    it(`${args.slice(0, 2).join(' ')} exits ${code}`, async () => {
      const { stdout, stderr, ...ended } = await run(args, input)
      expect(stdout || stderr).to.match(output)
      // Whatever a config and its packages print.
      if (code === 0 && LOADS_CONFIG.has(args[0])) expect(stderr).to.include('[banner] injecting env\n[banner] more\n')
      expect(ended.code, stderr).to.equal(code)
    })
  }

  for (const args of [['schema'], ['list', 'URL', '--json']]) {
    it(`${args[0]} exits 0 without a message if the reader of its output is gone`, async () => {
      const words = args.map(arg => (arg === 'URL' ? url : arg))
      const { child, ended } = startCli(words, folder, { MCP_HOST_HOME: folder })
      child.stdout.destroy()
      child.stdin.end()
      expect(await ended).to.deep.include({ code: 0, stderr: '' })
    })
  }

  it('proxy forwards messages until its input ends', async () => {
    const running = startCli(['proxy', url], folder, { MCP_HOST_HOME: folder })
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } }
    running.child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`)
    await running.printed(/^\{.*"id":1.*\}$/m)
    running.child.stdin.end()
    expect((await running.ended).code).to.equal(0)
  })

  it('login ends on Ctrl-C, and the next login starts at once', async () => {
    const desk = await startDesk()
    const { child, logged: waitFor, ended } = startCli(['login', desk.url, '--no-browser'], desk.home, desk.env)
    await waitFor(/Paste the URL here: /)
    child.kill('SIGINT')
    const { code, stderr } = await ended
    expect(code).to.equal(130)
    expect(stderr).to.match(/mcp-host: cancelled\n$/)
    expect((await desk.run(['login', desk.url])).code).to.equal(0)
  })

  it('doctor checks the host guard of a server behind https, and finds http in its metadata', async () => {
    const folder = await makeFolder({})
    const { file, ...certificate } = makeCertificate(folder)
    const tls = await startBadProxy(certificate)
    const authority = 'http://127.0.0.1:9/issuer'
    const plugins = {
      'transport-streamable': {},
      'auth-jwt': { authority },
      'resource-metadata': { authorizationServers: [authority] },
    }
    const routes = { '/mcp': { toolsets: 'none', authorize: true as const } }
    tls.target = (await startHost({ toolsets: { none: [] }, routes, plugins })).url
    const { ended } = startTrusting(file, ['doctor', '--url', `${tls.url}/mcp`], folder)
    const { code, stdout } = await ended
    expect(stdout).to.match(/^ok +host guard +A foreign Host gets 403$/m)
    expect(stdout).to.match(/^WRONG +metadata +resource is http:.*: http behind https/m)
    expect(stdout).to.match(/^WRONG +metadata +The challenge names http:.*\n +fix: Set http\.publicUrl/m)
    expect(code).to.equal(1)
  })

  it('init prompts, and writes nothing after Ctrl-C', async function () {
    needsTerminals(this)
    const folder = await makeFolder({})
    const { child, printed, ended } = startInTerminal(['init', 'asked'], folder, { CI: '' })
    await printed(/Name\?/)
    child.stdin.write('\r')
    await printed(/Which config format\?/)
    // Down, to YAML.
    child.stdin.write('\u001b[B')
    child.stdin.write('\r')
    await printed(/Require a login\?/)
    child.stdin.write('\r')
    await printed(/Where should sessions be stored\?/)
    // Up or down, to Redis: from a file, or from memory.
    child.stdin.write(isBuiltin('node:sqlite') ? '\u001b[B' : '\u001b[A')
    child.stdin.write('\r')
    expect((await ended).stdout).to.include('Created asked in asked')
    expect(await readFile(join(folder, 'asked/mcp.config.yaml'), 'utf8')).to.include('cluster-redis')

    const other = startInTerminal(['init', 'left'], folder, { CI: '' })
    await other.printed(/Name\?/)
    other.child.stdin.write('\u0003')
    expect((await other.ended).stdout).to.include('Nothing was written.')
    expect(await readdir(folder)).not.to.include('left')
  })
})
