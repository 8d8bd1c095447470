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

const CONFIG = configText({ tool: WAIT, http: "{ port: 0, keepAliveTimeout: '1h' }" })

async function serve(config = CONFIG): Promise<{ running: Running; url: string }> {
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': config }))
  return { running, url: await running.listening() }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  describe(`${signal} while a call runs`, () => {
    it('completes the call, serves new calls meanwhile, and exits 0', async () => {
      const { running, url } = await serve()
      const call = await callWait(url)
      running.child.kill(signal)
      await running.printed(new RegExp(`^${signal}: draining`, 'm'))
      expect((await modern(url, 'tools/list')).status).to.equal(200)
      running.child.stdin.write('go\n')
      const answer = await call.rest()
      expect(answer.result.content).to.deep.equal([{ type: 'text', text: 'finished' }])
      const { code, stdout, stderr } = await running.ended
      expect(stdout).to.match(/\nstopped.* 2 .* 0 .*\n$/)
      expect(stdout).not.to.include('cancelled: ')
      expect(stderr).to.equal('')
      expect(code).to.equal(0)
    })

    it('a second signal ends the process at once, with exit code 1', async () => {
      const { running, url } = await serve()
      const call = await callWait(url)
      running.child.kill(signal)
      await running.printed(/draining/m)
      running.child.kill(signal)
      const broken = await call.rest().then(
        () => undefined,
        (error: unknown) => error,
      )
      expect(broken).to.be.an('error')
      const { code, stdout } = await running.ended
      expect(stdout).not.to.include('stopped')
      expect(code).to.equal(1)
    })
  })
}

describe('SIGTERM', () => {
  it('exits 0 if a client keeps an idle connection open', async () => {
    const { running, url } = await serve()
    const agent = new Agent({ keepAlive: true })
    const sent = request(`${url}/nowhere`, { agent }).end()
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    agent.destroy()
    expect(stdout).to.match(/\nstopped.* 0 .* 0 .*\n$/)
    expect(code).to.equal(0)
  })

  it('runs the closing tasks of plugins before the process ends', async () => {
    const options = "options: { type: 'object', additionalProperties: false, properties: {} }"
    const { running } = await serve(
      configText({
        before: `const tidy = definePlugin({ ${options}, setup(host) { host.onClose(() => console.log('tidied up')) } })`,
        plugins: 'tidy: tidy()',
      }),
    )
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect(stdout).to.match(/^tidied up$/m)
    expect(code).to.equal(0)
  })

  it('ends a startup that hangs', async () => {
    const hanging = "console.log('loading')\nawait new Promise(resolve => setTimeout(resolve, 3_600_000))\n"
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': `${hanging}export default {}` }))
    await running.printed(/^loading$/m)
    running.child.kill('SIGTERM')
    const { code } = await running.ended
    expect(code).to.equal(1)
  })
})
