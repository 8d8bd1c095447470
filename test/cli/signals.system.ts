// Tests SIGTERM and SIGINT: running calls complete, then the process ends.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { modern } from '../support/rpc.ts'
import { callWait, WAIT } from './pending-call.ts'
import { configText, type Running, startCli, stopAll } from './run-cli.ts'

after(stopAll)
after(removeFolders)

const OPTIONS = "options: { type: 'object', additionalProperties: false, properties: {} }"
const CONFIG = configText({
  before: `const tidy = definePlugin({ ${OPTIONS}, setup(host) { host.onClose(() => console.log('tidied up')) } })`,
  tool: WAIT,
  http: "{ port: 0, keepAliveTimeout: '1h' }",
  plugins: 'tidy: tidy()',
})

async function serve(): Promise<{ running: Running; url: string }> {
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': CONFIG }))
  return { running, url: await running.listening() }
}

/** Opens a connection that stays open. */
async function openIdle(url: string): Promise<Agent> {
  const agent = new Agent({ keepAlive: true })
  const [response] = await once(request(`${url}/nowhere`, { agent }).end(), 'response')
  response.resume()
  await once(response, 'end')
  return agent
}

describe('mcp-host start', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`at ${signal} completes calls, serves new calls meanwhile, runs closing tasks of plugins, and exits 0`, async () => {
      const { running, url } = await serve()
      const agent = await openIdle(url)
      const call = await callWait(url)
      running.child.kill(signal)
      await running.printed(new RegExp(`^${signal}: draining`, 'm'))
      expect((await modern(url, 'tools/list')).status).to.equal(200)
      running.child.stdin.write('go\n')
      const answer = await call.rest()
      expect(answer.result.content).to.deep.equal([{ type: 'text', text: 'finished' }])
      const { code, stdout, stderr } = await running.ended
      agent.destroy()
      expect(stdout).to.match(/^tidied up$/m)
      expect(stdout).to.match(/\nstopped.* 2 .* 0 .*\n$/)
      expect(stdout).not.to.include('cancelled: ')
      expect(stderr).to.equal('')
      expect(code).to.equal(0)
    })
  }

  it('ends at once at a second signal, with exit code 1', async () => {
    const { running, url } = await serve()
    const call = await callWait(url)
    running.child.kill('SIGTERM')
    await running.printed(/draining/m)
    running.child.kill('SIGINT')
    const broken = await call.rest().then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(broken).to.be.an('error')
    const { code, stdout } = await running.ended
    expect(stdout).not.to.include('stopped')
    expect(code).to.equal(1)
  })

  it('at SIGTERM ends a startup that hangs', async () => {
    const hanging = "console.log('loading')\nawait new Promise(resolve => setTimeout(resolve, 3_600_000))\n"
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': `${hanging}export default {}` }))
    await running.printed(/^loading$/m)
    running.child.kill('SIGTERM')
    const { code } = await running.ended
    expect(code).to.equal(1)
  })
})
