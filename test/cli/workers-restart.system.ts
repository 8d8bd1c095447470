// Tests workers that end: the others serve, and they are replaced with increasing delays.
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { callText, startLoad, stopLoads } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { type Crew, linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopLoads)
after(stopAll)
after(removeFolders)

describe('a worker that is killed under load', () => {
  it('loses at most its running calls: the other worker serves, and a new worker replaces it', async () => {
    const { running, url, workers } = await startWorkers(2)
    const [victim = 0, other = 0] = workers
    // A connection on its way to the killed process can stay open until the client gives up.
    const load = startLoad(url, 'pid', { patience: 20_000 })
    await load.answers(100)
    process.kill(victim, 'SIGKILL')
    const [, successor] = await running.logged(/"worker":(\d+),"url":"[^"]+","serving":2,"msg":"a worker serves"/)
    await load.answers(100)
    const { failures, texts } = await load.stop()
    // Four callers, and one connection that may have been on its way to the process.
    expect(failures.length).to.be.at.most(5)
    expect([...texts.keys()].sort()).to.deep.equal([victim, other, successor].map(String).sort())
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const [end, ...more] = linesOf(stderr).filter(({ msg }) => msg.startsWith('a worker ended'))
    expect([end.worker, end.exitCode, end.signal, end.serving]).to.deep.equal([victim, null, 'SIGKILL', 1])
    expect(end.msg).to.equal('a worker ended; another is started')
    expect([more, code]).to.deep.equal([[], 0])
  })
})

describe('one of two workers', () => {
  let crew: Crew
  let workers: readonly number[]
  before(async () => {
    crew = await startWorkers(2)
  })

  it('is replaced after SIGTERM, when its running calls are complete', async () => {
    const { running, url, workers: first } = crew
    process.kill(first[0] ?? 0, 'SIGTERM')
    const [, successor] = await running.logged(/"worker":(\d+),"url":"[^"]+","serving":2,"msg":"a worker serves"/)
    workers = [first[1] ?? 0, Number(successor)]
    const answers = await Promise.all([...Array(20)].map(() => callText(url, 'pid')))
    expect([...new Set(answers)].sort()).to.deep.equal(workers.map(String).sort())
  })

  it('receives at most one new connection while it does not respond', async () => {
    const { running, url } = crew
    const [victim = 0, other = 0] = workers
    process.kill(victim, 'SIGSTOP')
    const answers: string[] = []
    const five = new Promise<void>(resolve => {
      const count = (text: string) => answers.push(text) === 5 && resolve()
      for (let call = 0; call < 6; call++) void callText(url, 'pid').then(count, () => undefined)
    })
    await Promise.race([five, running.ended])
    expect(answers).to.deep.equal(Array(5).fill(String(other)))
    process.kill(victim, 'SIGKILL')
    await running.logged(/"serving":2,"msg":"a worker serves"[\s\S]*"serving":2,"msg":"a worker serves"/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const ends = linesOf(stderr).filter(({ msg }) => msg.startsWith('a worker ended'))
    expect(ends.map(({ worker, exitCode }) => [worker, exitCode])).to.deep.equal([
      [crew.workers[0], 0],
      [victim, null],
    ])
    expect(code).to.equal(0)
  })
})

describe('workers that fail to restart', () => {
  it('are restarted with increasing delays, which the log reports, until they serve again', async () => {
    const before = "import { existsSync } from 'node:fs'\nif (existsSync('broken')) throw new Error('no database')"
    const { running, folder, workers } = await startWorkers(2, workersConfig({ before }))
    await writeFile(join(folder, 'broken'), '')
    for (const pid of workers) process.kill(pid, 'SIGKILL')
    await running.logged(/no worker is left; another is started/)
    await running.logged(/"wait":800,/)
    await rm(join(folder, 'broken'))
    const [, url = ''] = await running.logged(/"url":"([^"]+)","serving":\d,"msg":"a worker serves"/)
    expect(await callText(url, 'pid')).to.match(/^\d+$/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const tries = linesOf(stderr).filter(({ msg }) => msg.startsWith('a worker could not start'))
    const waits = tries.map(({ wait }) => wait).sort((a, b) => a - b)
    for (const { problem, serving, exitCode } of tries) {
      expect(problem).to.match(/^mcp\.config\.mjs:\d+: cannot be loaded: no database$/)
      expect([serving, exitCode]).to.deep.equal([0, 2])
    }
    // Two seats, each of which waits twice as long as the last time.
    for (const wait of [...new Set(waits)]) expect(waits.filter(other => other === wait).length).to.be.at.most(2)
    expect([waits.includes(200), waits.includes(400), code]).to.deep.equal([true, true, 0])
  })
})
