// Tests the warning of the plugin event-loop.
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { compute } from '../../support/compute.ts'
import { eventually } from '../../support/eventually.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const tools = [
  defineTool({ name: 'at_once', handler: () => compute(100) }),
  defineTool({
    name: 'later',
    async handler() {
      await sleep(5)
      return compute(100)
    },
  }),
]

describe('Warning of a blocked event loop', () => {
  after(stopHosts)

  for (const name of ['at_once', 'later']) {
    it(`has the duration and the calls of that time: ${name}`, async () => {
      const clock = createManualClock()
      const config = {
        toolsets: { all: tools },
        routes: { '/': { toolsets: 'all' } },
        plugins: { 'transport-streamable': {}, 'event-loop': { warnAfter: '60ms' } },
      }
      const { url, log } = await startHost(config, undefined, { clock })
      const lines = () => log.filter(({ message }) => message?.startsWith('The event loop was blocked'))
      // A block before the first sample of the histogram is not seen.
      const line = await eventually('the warning', async () => {
        await modern(url, 'tools/call', { name })
        await clock.advance(1_000)
        return lines().find(({ calls }) => String(calls).includes(name))
      })
      expect(line?.['ms']).to.be.at.least(60)
      expect(line?.['calls']).to.include(`tool ${name}`)
    })
  }
})
