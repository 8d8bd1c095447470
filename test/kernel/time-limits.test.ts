// Tests time limits for plugin promises that never settle at startup and shutdown.
import { expect } from 'chai'
import { definePlugin } from '../../core/internal.ts'
import { CLOSE_TIMEOUT, runWithTimeout } from '../../core/kernel/set-up.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { startHost } from '../support/start-host.ts'

const never = () => new Promise<void>(() => undefined)
const fault = async (part: () => void | Promise<void>) => {
  const clock = createManualClock()
  try {
    const ended = runWithTimeout(part, 50, clock)
    await Promise.all([ended, clock.advance(50)])
    return undefined
  } catch (error) {
    return String(error)
  }
}

describe('Plugin task that never settles', () => {
  it('times out with an error', async () => {
    expect(await fault(never)).to.match(/did not finish within 0\.05 s/)
    expect(await fault(() => undefined)).to.equal(undefined)
    expect(await fault(() => Promise.resolve())).to.equal(undefined)
    expect(await fault(() => Promise.reject(new Error('its own')))).to.equal('Error: its own')
  })

  it('is logged with the plugin name at shutdown while other plugins close', async () => {
    const closed: string[] = []
    const closing = (name: string, task: () => void | Promise<void>) =>
      definePlugin<Record<never, never>>({
        options: { type: 'object', additionalProperties: false, properties: {} },
        setup: host =>
          host.onClose(() => {
            closed.push(name)
            return task()
          }),
      })()
    const clock = createManualClock()
    const config = {
      toolsets: { all: [] },
      routes: { '/': { toolsets: 'all' } },
      plugins: {
        'transport-streamable': {},
        first: closing('first', () => undefined),
        hangs: closing('hangs', never),
        last: closing('last', () => undefined),
      },
    }
    const { host, log } = await startHost(config, undefined, { clock })
    const ended = host.close({ grace: 0 })
    await eventually('the hanging plugin closes', () => closed.includes('hangs'))
    await clock.advance(CLOSE_TIMEOUT)
    await ended
    expect(closed).to.have.members(['first', 'hangs', 'last'])
    const [line] = log.filter(({ message }) => message === 'failed to close')
    expect(line).to.include({ level: 'error', plugin: 'hangs' })
    expect(String(line?.['err'])).to.match(/did not finish within 5 s/)
  })
})
