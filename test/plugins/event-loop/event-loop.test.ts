// Tests the warning of the plugin event-loop.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { compute } from '../../support/compute.ts'
import { eventually } from '../../support/eventually.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const tools = [
  defineTool({ name: 'at_once', handler: () => compute(300) }),
  defineTool({
    name: 'later',
    async handler() {
      await sleep(5)
      return compute(300)
    },
  }),
]

describe('Warning of a blocked event loop', () => {
  after(stopHosts)

  for (const name of ['at_once', 'later']) {
    it(`has the duration and the calls of that time: ${name}`, async () => {
      const { url, log } = await startHost({
        toolsets: { all: tools },
        routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {}, 'event-loop': { warnAfter: '200ms' } },
      })
      const lines = () => log.filter(({ message }) => message?.startsWith('The event loop was blocked'))
      await modern(url, 'tools/call', { name })
      const line = await eventually('the warning', () => lines().find(({ calls }) => String(calls).includes(name)))
      expect(line?.['ms']).to.be.at.least(200)
      expect(line?.['calls']).to.include(`tool ${name}`)
    })
  }
})
