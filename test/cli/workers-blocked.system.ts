// Tests workers with a blocked event loop: they end at a stop, at a reload, and when their primary was killed.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { isAlive } from '../support/is-alive.ts'
import { callText } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { type Crew, linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopAll)
after(removeFolders)

/** Waits where a busy loop would count: no event comes through either way, and the core is left to other tests. */
const SPIN = `defineTool({
  name: 'spin',
  handler() {
    console.log('spinning in ' + process.pid)
    for (const cell = new Int32Array(new SharedArrayBuffer(4)); ; ) Atomics.wait(cell, 0, 0, 1_000)
  },
})`

/** Calls the tool; resolves with the pid of the worker, of those that spin the last. */
async function spin({ running, url }: Crew, spinning = 1): Promise<number> {
  // Nobody answers.
  void callText(url, 'spin').catch(() => undefined)
  const [, pid] = await running.printed(new RegExp(`(?:[^]*?^spinning in (\\d+)$){${spinning}}`, 'm'))
  return Number(pid)
}

const start = () => startWorkers(2, workersConfig({ tool: SPIN }))

describe('a worker with an infinite loop', () => {
  // Ten seconds of patience, beside whatever else runs.
  const it = concurrentIt()

  it('is killed at a reload, which continues, and at a stop, while the other worker drains', async () => {
    const crew = await start()
    const { running } = crew
    const first = await spin(crew)
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    expect(isAlive(first)).to.equal(false)
    const second = await spin(crew, 2)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const lines = linesOf(stderr)
    expect(lines.slice(-2).map(({ worker }) => worker)).to.deep.equal([second, second])
    expect(lines.slice(0, -2).filter(({ level }) => level >= 40)).to.have.length(1)
    const successors = lines.filter(({ replaced }) => replaced !== undefined).map(({ worker }) => worker)
    expect(successors).to.include(second)
    expect([[...crew.workers, ...successors].filter(isAlive), code]).to.deep.equal([[], 0])
  })

  it('ends itself when its primary is killed, and logs the reason', async () => {
    const crew = await start()
    const { running, workers } = crew
    const spinning = await spin(crew)
    running.child.kill('SIGKILL')
    // That is when all who could write to stdout and stderr have ended: the workers too.
    const { stderr } = await running.ended
    const other = workers.find(pid => pid !== spinning)
    const lines = linesOf(stderr)
    expect(lines.map(({ pid }) => pid)).to.deep.equal([other, spinning])
    expect(lines[1]?.msg).to.match(/event loop/)
  })
})
