// Tests workers with a blocked event loop: they end at a stop, at a reload, and when their primary was killed.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { isAlive } from '../support/is-alive.ts'
import { callText } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { linesOf, startWorkers, workersConfig } from './start-workers.ts'

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

/** Two workers, of which one spins; resolves with its pid. */
async function startSpinning() {
  const crew = await startWorkers(2, workersConfig({ tool: SPIN }))
  // Nobody answers.
  void callText(crew.url, 'spin').catch(() => undefined)
  const [, pid] = await crew.running.printed(/^spinning in (\d+)$/m)
  return { ...crew, spinning: Number(pid) }
}

describe('a worker with an infinite loop', () => {
  // Ten seconds of patience, and three starts of processes, beside whatever else runs.
  const it = concurrentIt()

  it('is killed if it does not respond to a stop; the other worker drains, and the exit code is 0', async () => {
    const { running, spinning, workers } = await startSpinning()
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    expect(linesOf(stderr).map(({ worker }) => worker)).to.deep.equal([spinning, spinning])
    expect([workers.filter(isAlive), code]).to.deep.equal([[], 0])
  })

  it('is killed at a reload, which continues', async () => {
    const { running, spinning } = await startSpinning()
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    expect(isAlive(spinning)).to.equal(false)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    expect(linesOf(stderr).filter(({ level }) => level >= 40)).to.have.length(1)
    expect(code).to.equal(0)
  })

  it('ends itself when its primary is killed, and logs the reason', async () => {
    const { running, spinning, workers } = await startSpinning()
    running.child.kill('SIGKILL')
    // That is when all who could write to stdout and stderr have ended: the workers too.
    const { stderr } = await running.ended
    const other = workers.find(pid => pid !== spinning)
    const lines = linesOf(stderr)
    expect(lines.map(({ pid }) => pid)).to.deep.equal([other, spinning])
    expect(lines[1]?.msg).to.match(/event loop/)
  })
})
