// The log of an embedding program: its methods, the limit of its lines and the report of suppressed lines.
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import type { CreateHostOptions } from '../../core/host.ts'
import type { Logger } from '../../core/kernel/log.ts'
import { MAX_LINES } from '../../core/kernel/log.ts'
import { definePlugin } from '../../core/plugin.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { createManualClock } from '../support/manual-clock.ts'

const COUNT = 100
const CONFIG = {
  server: { name: 'test', version: '1' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { none: [] },
  routes: { '/mcp': { toolsets: ['none'] } },
}

/** Creates and closes a host with a plugin that logs while it starts. */
async function logged(write: (log: Logger) => void, level = 'info') {
  const noisy = definePlugin({ setup: host => host.onStart(() => write(host.log)) })
  const { lines, ...log } = createTestLog()
  const host = await createHost(
    { ...CONFIG, plugins: { 'transport-streamable': {}, noisy: noisy() } },
    { log: Object.assign(log, { level }) },
  )
  await host.listen()
  await host.close()
  return lines
}

const failOften = (log: Logger) => {
  for (let index = 0; index < COUNT; index++) log.error({ index }, 'failed')
}

describe('Log of an embedding program', () => {
  it('receives a limited number of equal errors, and the number of suppressed ones at close', async () => {
    const lines = await logged(failOften)
    expect(lines.filter(({ message }) => message === 'failed').length).to.equal(MAX_LINES)
    expect(lines.filter(({ code }) => code === 'MH1901').map(line => line['lines'])).to.deep.equal([COUNT - MAX_LINES])
  })

  it('receives all lines at the levels debug and trace', async () => {
    for (const level of ['debug', 'trace']) {
      expect((await logged(failOften, level)).filter(({ message }) => message === 'failed').length, level).to.equal(
        COUNT,
      )
    }
  })

  it('cannot fail the host by an error that it throws, also in a timer', async () => {
    const fail = () => {
      throw new Error('the log is full')
    }
    const log: Logger = { debug: fail, info: fail, warn: fail, error: fail, child: () => log }
    const noisy = definePlugin({ setup: host => host.onStart(() => failOften(host.log)) })
    const clock = createManualClock()
    const plugins = { 'transport-streamable': {}, noisy: noisy() }
    const host = await createHost({ ...CONFIG, plugins }, { log, clock } as CreateHostOptions)
    await host.listen()
    await clock.advance(60_000)
    await host.close()
  })

  it('receives lines without fields', async () => {
    const lines = await logged(log => log.info(null as unknown as object, 'no fields'))
    expect(lines.some(({ message }) => message === 'no fields')).to.equal(true)
  })

  it('is refused without all methods', async () => {
    const error = await rejectionOf(createHost(CONFIG, { log: console as unknown as Logger }))
    expect(String(error)).to.include('`log`').and.include('child')
  })
})
