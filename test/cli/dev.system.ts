// Tests `mcp-host dev`: edits apply while sessions and streams continue, and errors and required restarts are reported.
import { once } from 'node:events'
import { readFile, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeFolder, removeFolders, replaceFile } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { editedConfig } from './edited-config.ts'
import { needsTerminals, startInTerminal } from './in-terminal.ts'
import { CORE, type Running, runCli, startCli, stopAll } from './run-cli.ts'

after(async () => {
  await stopAll()
  await removeFolders()
})

const CONFIG = editedConfig({ tools: './tools/*.ts', path: '/mcp' })
const tool = (name: string, text: string) => `import { defineTool } from '${CORE}'
import { mark } from '../lib/mark.ts'
export const ${name} = defineTool({ name: '${name}', handler: () => '${text}' + mark })
`
const FILES = {
  'mcp.config.ts': CONFIG,
  'tools/say.ts': tool('say', 'one'),
  'lib/mark.ts': "export const mark: string = '.'",
  '.env': 'GREETING=hello\nPATH=nothing\n',
}

const textOf = ({ result }: RpcMessage): string => result.content[0].text

interface Dev {
  readonly running: Running
  readonly url: string
  write(name: string, text: string): Promise<void>
}

async function startDev(config: string): Promise<Dev> {
  const folder = await makeFolder({ ...FILES, 'mcp.config.ts': config })
  const running = startCli(['dev'], folder)
  const url = `${await running.listening()}/mcp`
  return { running, url, write: (name, text) => replaceFile(join(folder, name), text) }
}

/** A server on a free port, and a config with this port. */
async function occupyPort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { server, port, config: CONFIG.replace('port: 0', `port: ${port}`) }
}

async function quit({ child, ended }: Running) {
  child.kill('SIGTERM')
  return ended
}

describe('mcp-host dev', () => {
  it('reloads edits, new files and their imports on the next free port; sessions and streams continue', async () => {
    const { server: other, port, config } = await occupyPort()
    const { running, url, write } = await startDev(config)
    await running.printed(new RegExp(`^Port ${port} is in use\\. Trying port ${port + 1}\\.$`, 'm'))
    expect(Number(new URL(url).port)).to.be.greaterThan(port)
    const session = await openSession(url)
    const stream = await session.get()
    const say = async () => textOf((await session.request('tools/call', { name: 'say' })).message)
    expect(session.initialized.message.result.instructions).to.equal('hello')
    expect(await say()).to.equal('one.')
    await running.printed(/^\d\d:\d\d:\d\d {2}anonymous {2}tools\/call say {2}[\d.]+ ms {2}ok$/m)

    await write('tools/say.ts', tool('say', 'two'))
    await running.printed(/^Changed: tools\/say\.ts\nReloaded: toolsets\.talk$/m)
    expect(await say()).to.equal('two.')
    await write('lib/mark.ts', "export const mark: string = '!'")
    await running.printed(/^Changed: lib\/mark\.ts\nReloaded: toolsets\.talk$/m)
    expect(await say()).to.equal('two!')
    await write('tools/more.ts', tool('more', 'more'))
    await running.printed(/^Changed: tools\/more\.ts\nReloaded: toolsets\.talk; notified 1 client$/m)
    expect((await nextMessage(stream)).method).to.equal('notifications/tools/list_changed')
    await write('.env', 'GREETING=goodbye\n')
    await running.printed(/^Changed: (?:unused\.ts, )?\.env\nReloaded: server$/m)
    expect((await openSession(url)).initialized.message.result.instructions).to.equal('goodbye')

    await write('tools/say.ts', "export const say = '")
    await running.printed(/say\.ts:1: [\s\S]*\nStill serving the previous version\.$/m)
    expect(await say()).to.equal('two!')
    await write('tools/say.ts', tool('say', 'three'))
    await eventually('the tool is served again', say, text => text === 'three!')

    await write('mcp.config.ts', config.replace('port:', 'writeTimeout: 9_000, port:'))
    await running.printed(
      /^Restart required for: http\.writeTimeout \(stop and start it again\)\. Still serving the previous version\.$/m,
    )
    expect(await say()).to.equal('three!')
    const { code, stdout, stderr } = await quit(running)
    other.close()
    expect(code).to.equal(0)
    expect(stderr).to.equal('')
    // The stream that was open is told of when it ends.
    expect(stdout).not.to.match(/^Changed: unused\.ts$|no changes/m)
    expect(stdout).to.match(/\nStopping\. Press q again to stop immediately\.\n/)
  })

  it('waits for the next edit after invalid variables, an invalid config, a port in use and a crash', async () => {
    const { server: other, port, config } = await occupyPort()
    const fixed = config.replace('port:', `publicUrl: 'http://127.0.0.1:${port}', port:`)
    const files = { ...FILES, 'mcp.config.ts': fixed.replace('server:', 'sever:') }
    const folder = await makeFolder({ ...files, 'my.env': '# fine\nGREETING=x\nhunter2\n' })
    const running = startCli(['dev', '--env-file', 'my.env'], folder)
    await running.logged(/my\.env:3: not a variable; a line is NAME=value/)
    await running.printed(/^Server stopped \(exit code 2\)\. It restarts after the next change\.$/m)
    await replaceFile(join(folder, 'my.env'), 'GREETING=x\n')
    await running.logged(/did you mean "server"/)
    await running.printed(/Server stopped[\s\S]*^Server stopped \(exit code 2\)/m)
    await replaceFile(join(folder, 'mcp.config.ts'), fixed)
    await running.logged(/error MH1301: /)
    await running.printed(/^Server stopped \(exit code 1\)\. It restarts after the next change\.$/m)
    other.close()
    await replaceFile(join(folder, 'mcp.config.ts'), `${fixed}\n`)
    expect(await running.listening()).to.contain(`:${port}`)
    await replaceFile(join(folder, 'tools/say.ts'), `${tool('say', 'one')}process.exit(6)\n`)
    await running.printed(/say\.ts:4: .*it calls process\.exit\(6\) while it is loaded/)
    const crash = 'setTimeout(() => process.exit(7), 500)'
    await replaceFile(join(folder, 'tools/say.ts'), `${tool('say', 'one')}${crash}\n`)
    await running.printed(/^Server stopped \(exit code 7\)/m)
    await replaceFile(join(folder, 'tools/say.ts'), tool('say', 'back'))
    const [, url] = await running.printed(/listening on [\s\S]*listening on (http:\S+)$/m)
    expect(textOf((await modern(`${url}/mcp`, 'tools/call', { name: 'say' })).message)).to.equal('back.')
    const { code, stderr } = await quit(running)
    expect(code).to.equal(0)
    expect(stderr).not.to.include('hunter2')
  })

  it('ends without a config and without a terminal', async () => {
    const { code, stderr } = await runCli(['dev'], await makeFolder({}))
    expect(stderr).to.contain('No config found in ')
    expect(code).to.equal(2)
  })

  it('opens the console with o and an endpoint with e, restarts with r and quits with q at a terminal; the keys of dev-auth-server stay', async function () {
    needsTerminals(this)
    const plugins = "plugins: { 'dev-auth-server': { users: [{ id: 'ada' }] },"
    const files = { ...FILES, 'mcp.config.ts': CONFIG.replace('plugins: {', plugins) }
    const folder = await makeFolder({ ...files, 'browser.sh': 'echo "$1" > opened' })
    const running = startInTerminal(['dev'], folder, { BROWSER: 'sh browser.sh %s' })
    await running.printed(/^ {2}Keys +r restart {3}o open {3}q quit {3}\? help\r$/m)
    running.child.stdin.write('?')
    await running.printed(/^ {2}r {2}restart, for changes/m)
    running.child.stdin.write('o')
    const [, page] = await running.printed(/Opening (http:\S+)/)
    const opened = () => readFile(join(folder, 'opened'), 'utf8').catch(() => '')
    expect(await eventually('the browser', opened)).to.equal(`${page}\n`)
    expect(page).to.contain('/#t=')
    expect(await (await fetch(`${page}`)).text()).to.contain('<title>Operator console</title>')
    running.child.stdin.write('e')
    const [, endpoint] = await running.printed(/Opening (http:\S+\/mcp)\r$/m)
    expect((await fetch(`${endpoint}`, { headers: { Accept: 'text/html' } })).status).to.equal(200)
    const keysAt = async (page = '') => (await fetch(new URL('/dev-auth/jwks', page))).text()
    const keys = await keysAt(endpoint)
    expect(keys).to.include('"kty"')
    running.child.stdin.write('r')
    const [, restarted] = await running.printed(/Restarting[\s\S]* (http:\S+\/mcp) [\s\S]* {2}Keys /)
    expect(await keysAt(restarted)).to.equal(keys)
    expect((await stat(join(folder, '.mcp-host/dev-auth-server.json'))).mode & 0o777).to.equal(0o600)
    await replaceFile(join(folder, '.env'), 'no variable\n')
    await running.printed(/Changed: \.env[\s\S]*Still serving the previous version/)
    running.child.stdin.write('r')
    await running.printed(
      /Still serving the previous version[\s\S]*\.env:1: not a variable;[\s\S]*Still serving the previous version/,
    )
    running.child.stdin.write('q')
    const { code, stdout } = await running.ended
    expect(stdout.match(/Restarting/g)).to.have.length(1)
    expect(stdout).to.match(/Stopping\. Press q again to stop immediately\.\s*$/)
    expect(code).to.equal(0)
  })
})
