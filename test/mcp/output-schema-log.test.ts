// Tests the log entry for a handler result that violates the output schema.
import { expect } from 'chai'
import { describeFailure } from '../../core/http/describe-thrown.ts'
import { defineTool } from '../../core/index.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

after(stopHosts)

describe('Output schema violation in the log', () => {
  it('names the tool, without frames of the host', async () => {
    const odd = defineTool({ name: 'odd', output: { type: 'number' }, handler: () => 'text' })
    const { url, log } = await startHost({ toolsets: { all: [odd] }, routes: { '/': { toolsets: 'all' } } })
    await modern(url, 'tools/call', { name: 'odd' })
    const [failure] = log
      .filter(({ level }) => level === 'error')
      .map(({ err }) => describeFailure(err, { fullStack: false, directory: process.cwd() }))
    expect(failure?.message).to.match(
      /^the result of odd does not match its output schema: \(result\): must be a number, was "text"/,
    )
    expect(failure).not.to.have.any.keys('at', 'stack', 'hidden')
  })
})
