// Tests a rejected promise that a tool does not await: Node would end the process and all running calls.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { modern } from '../support/rpc.ts'
import { configText, startCli, stopAll } from './run-cli.ts'

after(stopAll)
after(removeFolders)

const LEAVE = `defineTool({
  name: 'leave',
  handler() {
    setTimeout(() => console.log('rejected'))
    void Promise.reject(new Error('left behind'))
    return 'left'
  },
})`

describe('rejected promise that a tool does not await', () => {
  it('is logged once with its reason; the process continues and serves the next call', async () => {
    const running = startCli(['start'], await makeFolder({ 'mcp.config.mjs': configText({ tool: LEAVE }) }))
    const url = await running.listening()
    expect((await modern(url, 'tools/call', { name: 'leave' })).message.result.content[0].text).to.equal('left')
    await running.printed(/^rejected$/m)
    expect((await modern(url, 'tools/call', { name: 'echo' })).message.result.content[0].text).to.equal('echoed')
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    expect(code).to.equal(0)
    expect(stderr.split('\n').filter(line => line.includes('left behind'))).to.have.length(1)
  })
})
