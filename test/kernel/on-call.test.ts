// Tests that an `onCall` hook that calls next() twice runs the tool once.
import { expect } from 'chai'
import { defineTool } from '../../core/index.ts'
import { plugin } from '../fixtures/plugins.ts'
import { modern } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

describe('around hook that calls next() twice', () => {
  after(stopHosts)

  it('runs the tool once and fails the second next() call', async () => {
    let runs = 0
    const count = defineTool({
      name: 'count',
      handler() {
        runs++
        return 'counted'
      },
    })
    const twice = {
      atOnce: plugin(host => host.onCall((_call, next) => Promise.all([next(), next()]).then(([first]) => first))),
      later: plugin(host =>
        host.onCall(async (_call, next) => {
          await next()
          return next()
        }),
      ),
    }
    const passes = plugin(host => host.onCall((_call, next) => next()))
    const counted: number[] = []
    for (const [name, wrong] of Object.entries(twice)) {
      const { url, log } = await startHost({
        toolsets: { all: [count] },
        routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {}, before: passes, wrong, behind: passes },
      })
      runs = 0
      const { status, message } = await modern(url, 'tools/call', { name: 'count' })
      expect([status, message.error.code], name).to.deep.equal([200, -32603])
      expect(String(log.find(({ level }) => level === 'error')?.['err'])).to.contain('next() called multiple times')
      counted.push(runs)
    }
    expect(counted).to.deep.equal([1, 1])
  })
})
