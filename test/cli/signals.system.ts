// SIGTERM and SIGINT: what runs may end, nothing new begins, and then the process is gone.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { modern, modernRequest, parseEvents, type RpcMessage } from '../support/rpc.ts'
import { configText, type Running, startCli, stopAll } from './run-cli.ts'

after(stopAll)
after(removeFolders)

/** Notifies that it runs, ends when a line is written to the process, tells on stdout when it is cancelled. */
const WAIT = `defineTool({
  name: 'wait',
  async handler(_, { progress, signal }) {
    signal.addEventListener('abort', () => console.log('cancelled: ' + signal.reason.message))
    progress(1)
    await new Promise(resolve => process.stdin.once('data', resolve))
    return 'finished'
  },
})`

const CONFIG = configText({ tool: WAIT, http: "{ port: 0, keepAliveTimeout: '1h' }" })

interface RunningCall {
  /** The rest of the stream's messages, once it has ended; rejects when it broke off. */
  rest(): Promise<RpcMessage[]>
}

/** Calls the waiting tool; resolves once its handler runs. */
async function callWait(url: string): Promise<RunningCall> {
  const { headers, body } = modernRequest('tools/call', { name: 'wait' }, { meta: { progressToken: 'p' } })
  const base = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
  const response = await fetch(url, {
    method: 'POST',
    body,
    headers: { ...base, ...(headers as Record<string, string>) },
  })
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader()
  const { value = '' } = await reader.read()
  expect(parseEvents(value)[0].method).to.equal('notifications/progress')
  return {
    async rest() {
      let text = ''
      for (;;) {
        const { done, value = '' } = await reader.read()
        if (done) return parseEvents(text)
        text += value
      }
    },
  }
}

async function serve(config = CONFIG): Promise<{ running: Running; url: string }> {
  const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': config }))
  return { running, url: await running.listening() }
}

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  describe(`${signal} while a call runs`, () => {
    it('lets the call end, gives its client the answer, answers new ones meanwhile, and exits 0', async () => {
      const { running, url } = await serve()
      const call = await callWait(url)
      running.child.kill(signal)
      await running.printed(new RegExp(`^${signal}: draining`, 'm'))
      expect((await modern(url, 'tools/list')).status).to.equal(200)
      running.child.stdin.write('go\n')
      const [answer] = await call.rest()
      expect(answer.result.content).to.deep.equal([{ type: 'text', text: 'finished' }])
      const { code, stdout, stderr } = await running.ended
      expect(stdout).to.match(/\nstopped; running requests: 2 finished, 0 cancelled\n$/)
      expect(stdout).not.to.include('cancelled: ')
      expect(stderr).to.equal('')
      expect(code).to.equal(0)
    })

    it('a second signal ends the process at once, with exit code 1', async () => {
      const { running, url } = await serve()
      const call = await callWait(url)
      running.child.kill(signal)
      await running.printed(/draining; a second signal ends at once$/m)
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
  it('exits 0 though a client keeps an idle connection open', async () => {
    const { running, url } = await serve()
    const agent = new Agent({ keepAlive: true })
    const sent = request(`${url}/nowhere`, { agent }).end()
    const [response] = await once(sent, 'response')
    response.resume()
    await once(response, 'end')
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    agent.destroy()
    expect(stdout).to.match(/\nstopped; running requests: 0 finished, 0 cancelled\n$/)
    expect(code).to.equal(0)
  })

  it('runs the closing tasks of plugins before the process ends', async () => {
    const options = "options: { type: 'object', additionalProperties: false, properties: {} }"
    const { running } = await serve(
      configText({
        before: `const tidy = definePlugin({ ${options}, setup(host) { host.closing(() => console.log('tidied up')) } })`,
        plugins: 'tidy: tidy()',
      }),
    )
    running.child.kill('SIGTERM')
    const { code, stdout } = await running.ended
    expect(stdout).to.match(/^tidied up$/m)
    expect(code).to.equal(0)
  })

  it('ends a start that hangs', async () => {
    const hanging = "console.log('loading')\nawait new Promise(resolve => setTimeout(resolve, 3_600_000))\n"
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': `${hanging}export default {}` }))
    await running.printed(/^loading$/m)
    running.child.kill('SIGTERM')
    const { code } = await running.ended
    expect(code).to.equal(1)
  })
})
