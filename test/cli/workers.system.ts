// Tests `mcp-host start --workers N`: processes on one port that start, stop and fail together.
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { freePort } from '../support/free-port.ts'
import { isAlive } from '../support/is-alive.ts'
import { post } from '../support/rpc.ts'
import { callText } from '../support/steady-load.ts'
import { callWait, WAIT } from './pending-call.ts'
import { type ConfigParts, configText, runCli, startCli, stopAll } from './run-cli.ts'
import { type Crew, linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopAll)
after(removeFolders)

const WAITING = workersConfig({ tool: WAIT })

/** Leaves a promise behind that rejects, which the log tells of; answers with the id of its process. */
const LEAVE = `defineTool({
  name: 'leave',
  handler() {
    void Promise.reject(new Error('left behind'))
    return String(process.pid)
  },
})`

const start = async (parts: ConfigParts) =>
  runCli(['start', '--workers', '2'], await makeFolder({ 'mcp.config.mjs': workersConfig(parts) }))

const openSession = (url: string) => {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  return post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }))
}

describe('mcp-host start --workers 2', () => {
  let both: Crew
  /** The responses of calls that caused an unhandled rejection. */
  let left: string[] = []
  before(async () => {
    both = await startWorkers(2, workersConfig({ tool: `${WAIT}, ${LEAVE}` }))
  })

  it('serves from both processes on one port; log lines name the process', async () => {
    const { url, workers } = both
    const answers = await Promise.all([...Array(20)].map(() => callText(url, 'leave')))
    const share = workers.map(pid => answers.filter(answer => answer === String(pid)).length)
    expect(share[0]).to.be.within(1, 19)
    expect((share[0] ?? 0) + (share[1] ?? 0)).to.equal(20)
    left = answers
  })

  it('completes a running call at SIGTERM, counts it, and exits 0 when every worker has ended', async () => {
    const { running, url, workers } = both
    const call = await callWait(url)
    running.child.kill('SIGTERM')
    await running.printed(/^SIGTERM: draining/m)
    running.child.stdin.write('go\n')
    expect((await call.rest()).result.content[0].text).to.equal('finished')
    const { code, stdout, stderr } = await running.ended
    expect(stdout).to.match(/\nstopped.* 1 .* 0 .*\n$/)
    const lines = linesOf(stderr)
    expect(lines.map(({ code }) => code)).to.deep.equal(left.map(() => 'MH3105'))
    expect(lines.map(({ pid }) => String(pid)).sort()).to.deep.equal([...left].sort())
    expect([code, workers.filter(isAlive)]).to.deep.equal([0, []])
  })

  it('ends at once at a second signal, with exit code 1', async () => {
    const { running, url } = await startWorkers(1, WAITING)
    const call = await callWait(url)
    running.child.kill('SIGTERM')
    await running.printed(/draining/m)
    running.child.kill('SIGINT')
    expect(await call.rest().catch((error: unknown) => error)).to.be.an('error')
    const { code, stdout } = await running.ended
    expect(stdout).not.to.include('stopped')
    expect(code).to.equal(1)
  })

  it('drains and ends the worker when the primary is killed', async () => {
    const { running, url, workers } = await startWorkers(1, WAITING)
    const call = await callWait(url)
    running.child.kill('SIGKILL')
    // The primary's end of stdin is gone too, which ends the call.
    expect((await call.rest()).result.content[0].text).to.equal('finished')
    // That is when all who could write to stdout and stderr have ended: the worker too.
    const { code, stderr } = await running.ended
    expect(code).to.equal('SIGKILL')
    const gone = linesOf(stderr).filter(({ code }) => code === 'MH3127')
    expect(gone.map(({ pid, level }) => [pid, level])).to.deep.equal([[workers[0], 40]])
  })
})

describe('failed startup with workers', () => {
  it('on a busy port reports it once, and exits 1', async () => {
    const busy = createServer().listen(0, '127.0.0.1')
    await once(busy, 'listening')
    const { port } = busy.address() as AddressInfo
    const { code, stderr, stdout } = await start({ http: `{ port: ${port} }` })
    busy.close()
    expect(stderr).to.match(new RegExp(`^mcp-host: .*${port}.*127\\.0\\.0\\.1.*http\\.port.*\n$`))
    expect([stdout, code]).to.deep.equal(['', 1])
  })

  it('with sessions in memory reports it once, with both fixes, and exits 2', async () => {
    const { code, stderr, stdout } = await start({ routes: "{ '/': { toolsets: 'first' } }" })
    expect(stderr).to.match(
      /^mcp-host: error \w+: this config cannot be served by 2 processes, which would not share their state\n- [^\n]+\n$/,
    )
    expect(stderr).to.match(/routes\['\/'\]/)
    expect(stderr).to.match(/set `stateless: true` on that route, or enable .*store-sqlite.*cluster-redis/)
    expect([stdout, code]).to.deep.equal(['', 2])
  })

  it('if the first worker ends by a signal names the signal', async () => {
    const { code, stderr } = await start({ before: "process.kill(process.pid, 'SIGKILL')" })
    expect(stderr).to.match(/^mcp-host.*SIGKILL/)
    expect(code).to.equal(1)
  })

  it('if it hangs is ended by the first signal', async () => {
    const hanging = "console.log('loading')\nawait new Promise(resolve => setTimeout(resolve, 3_600_000))\n"
    const folder = await makeFolder({ 'mcp.config.mjs': `${hanging}export default {}` })
    const running = startCli(['start', '--workers', '2'], folder)
    await running.printed(/^loading$/m)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(1)
  })
})

describe('mcp-host start --workers 1', () => {
  it('can keep sessions in memory, with secrets of the environment; the primary handles SIGINT of the terminal', async () => {
    const secrets = ['one secret that is long enough for tests', 'another that is long enough for them']
    const env = { MCP_HOST_SECRETS: secrets.join(', ') }
    const { running, url, workers } = await startWorkers(1, configText({ secrets: '[]', tool: WAIT }), env)
    expect(workers).to.have.length(1)
    expect((await openSession(url)).status).to.equal(200)
    const call = await callWait(url)
    // Every process of a terminal receives it.
    for (const pid of [...workers, running.child.pid ?? 0]) process.kill(pid, 'SIGINT')
    await running.printed(/^SIGINT: draining/m)
    running.child.stdin.write('go\n')
    expect((await call.rest()).result.content[0].text).to.equal('finished')
    const { code, stderr } = await running.ended
    expect([stderr, code]).to.deep.equal(['', 0])
  })
})

describe('port of a plugin that is in use, with workers', () => {
  it('is reported with its plugin and line', async () => {
    const port = await freePort()
    const taken = createServer().listen(port, '127.0.0.1')
    try {
      const { code, stderr } = await start({ plugins: `metrics: { port: ${port} }` })
      expect(code).to.equal(1)
      expect(stderr).to.match(
        new RegExp(
          `^mcp-host: error MH\\d{4}: mcp\\.config\\.mjs:\\d+: plugins\\.metrics\\.port: port ${port} of 127\\.0\\.0\\.1[^\\n]*\\n$`,
        ),
      )
    } finally {
      taken.close()
    }
  })
})
