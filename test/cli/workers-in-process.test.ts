// Tests parts of `start --workers` without processes: kept metrics, restart delays and the number of workers.
import { availableParallelism } from 'node:os'
import { expect } from 'chai'
import { readWorkers } from '../../cli/command.ts'
import { createLastingCounts } from '../../cli/workers/hub.ts'
import { createBackOff, MAX_DELAY, STABLE_TIME } from '../../cli/workers/worker-slot.ts'

describe('metrics of an ended worker', () => {
  it('are kept while it does not respond, and added to the total when it ends', () => {
    const lasting = createLastingCounts()
    lasting.record('metrics', 1, { lasting: { a: 1, b: 2 } })
    lasting.record('metrics', 2, { lasting: { a: 10 } })
    lasting.record('other', 1, { sessions: 3 })
    expect(lasting.countsExcept('metrics', new Set([1, 2]))).to.deep.equal([])
    expect(lasting.countsExcept('metrics', new Set([1]))).to.deep.equal([{ lasting: { a: 10 } }])
    lasting.removeWorker(1)
    lasting.removeWorker(2)
    lasting.record('metrics', 3, { lasting: { a: 100 } })
    expect(lasting.countsExcept('metrics', new Set([3]))).to.deep.equal([{ lasting: { a: 11, b: 2 } }])
    expect(lasting.countsExcept('other', new Set([1]))).to.deep.equal([])
  })
})

describe('delay before a worker is restarted', () => {
  it('doubles from 100 ms to 30 s', () => {
    const backOff = createBackOff()
    const waits = [...Array(12)].map(() => backOff(0))
    expect(waits.slice(0, 4)).to.deep.equal([100, 200, 400, 800])
    expect(waits.slice(-3)).to.deep.equal([MAX_DELAY, MAX_DELAY, MAX_DELAY])
  })

  it('starts again at the minimum after a worker that served for a while', () => {
    const backOff = createBackOff()
    for (let end = 0; end < 5; end++) backOff(STABLE_TIME - 1)
    expect([backOff(STABLE_TIME), backOff(0)]).to.deep.equal([100, 200])
  })
})

describe('number of workers', () => {
  it('is 1 to 1024, or auto for one per core', () => {
    for (const count of ['0', '-1', '1.5', 'many', '3000', '']) {
      expect(() => readWorkers(count)).to.throw(`--workers ${count}: give a number from 1 to 1024, or "auto"`)
    }
    expect([readWorkers('1'), readWorkers('1024'), readWorkers('auto')]).to.deep.equal([
      1,
      1024,
      availableParallelism(),
    ])
  })
})
