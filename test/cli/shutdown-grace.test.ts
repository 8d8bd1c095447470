// Tests a host that closes while a call runs longer than the grace period.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

describe('host shutdown', () => {
  after(stopHosts)

  it('cancels a call after the grace period: its signal aborts, with the reason', async () => {
    let aborted: (reason: Error) => void = () => {}
    const reason = new Promise<Error>(resolve => {
      aborted = resolve
    })
    let entered: () => void = () => {}
    const runs = new Promise<void>(resolve => {
      entered = resolve
    })
    const endless = defineTool({
      name: 'endless',
      async handler(_, { signal }) {
        signal.addEventListener('abort', () => aborted(signal.reason))
        entered()
        await new Promise(() => {})
        return ''
      },
    })
    const { host, url } = await startHost({ toolsets: { all: [endless] }, routes: { '/': { toolsets: 'all' } } })
    const call = modern(url, 'tools/call', { name: 'endless' })
    await runs
    expect(await host.close({ grace: 1 })).to.deep.equal({ finished: 0, cancelled: 1 })
    expect((await reason).message).to.equal('the server is shutting down')
    expect((await call).message.error.data).to.deep.equal({ reason: 'node-lost', retryable: true })
  })
})
