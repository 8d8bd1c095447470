// The access log writer: reports of stuck and failed writes, and the count of lost lines.
import { expect } from 'chai'
import type { Logger } from '../../../core/plugin.ts'
import { type Destination, LogWriter } from '../../../plugins/access-log/log-writer.ts'
import { eventually } from '../../support/eventually.ts'

const CANNOT = 'Cannot write the access log; up to 8 MB are buffered'

/** A writer whose timeout is short, what it logged, and how many lines it lost. */
function startLines(write: Destination['write'], timeout = 5) {
  const told: Array<{ readonly message: string; readonly problem?: string; readonly lines?: number }> = []
  const tell = (facts: object, message: string) => void told.push({ ...facts, message })
  const log = { debug: tell, info: tell, warn: tell, error: tell } as unknown as Logger
  let lost = 0
  const lines = new LogWriter({
    destination: { write, close: () => undefined },
    file: undefined,
    log,
    timeout,
    countLost(count) {
      lost += count
    },
  })
  return { lines, told, lost: () => lost }
}

describe('Access log writer', () => {
  it('reports a stuck write once, and reports its recovery', async () => {
    let comeBack: ((taken: number) => void) | undefined
    const { lines, told, lost } = startLines((bytes, from) => {
      if (comeBack) return Promise.resolve(bytes.length - from)
      return new Promise(resolve => {
        comeBack = resolve
      })
    })
    lines.write('one\n')
    await eventually('the failure', () => lines.failure)
    expect(lines.failure).to.equal('a write has not completed for 0.005 s: its reader does not read')
    lines.write('two\n')
    expect(told.map(({ message }) => message)).to.deep.equal([CANNOT])
    comeBack?.('one\n'.length)
    await eventually('its end', () => lines.failure === undefined)
    expect(told[1]?.message).to.equal('the access log is written again')
    await lines.close()
    expect(lost()).to.equal(0)
  })

  it('reports the error of a stuck write that fails later', async () => {
    let fail: ((error: Error) => void) | undefined
    const { lines, told } = startLines(
      () =>
        new Promise((_, reject) => {
          fail = reject
        }),
    )
    lines.write('one\n')
    await eventually('the failure', () => lines.failure)
    fail?.(new Error('EPIPE'))
    await eventually('the reason', () => lines.failure === 'EPIPE')
    expect(told.map(({ message }) => message)).to.deep.equal([CANNOT, CANNOT])
    expect(told[1]?.problem).to.equal('EPIPE')
  })

  it('counts only unwritten lines as lost on close', async () => {
    let writes = 0
    const { lines, told, lost } = startLines(async () => {
      // The first line, and a part of the second.
      if (writes++ === 0) return 'one\nt'.length
      throw new Error('ENOSPC')
    }, 5_000)
    for (const line of ['one\n', 'two\n', 'three\n']) lines.write(line)
    await lines.close()
    expect(lost()).to.equal(2)
    expect(told.find(({ message }) => message.startsWith('Access log closed'))?.lines).to.equal(2)
  })
})
