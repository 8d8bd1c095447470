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

describe('one of two workers', () => {
  let crew: Crew
  /** Those that serve. */
  let workers: readonly number[]
  const ended: (readonly [worker: number, exitCode: number | null, signal: string | null])[] = []
  before(async () => {
    crew = await startWorkers(2)
    ;({ workers } = crew)
  })

  /** Resolves with the successor of a worker, once it serves. */
  async function successorOf(victim: number, signal: 'SIGKILL' | 'SIGTERM'): Promise<number> {
    ended.push([victim, ...(signal === 'SIGTERM' ? ([0, null] as const) : ([null, signal] as const))])
    process.kill(victim, signal)
    const line = '"worker":(\\d+),"url":"[^"]+","serving":2,"msg":"a worker serves"'
    const [, successor] = await crew.running.logged(new RegExp(`(?:[^]*?${line}){${ended.length}}`))
    workers = [...workers.filter(pid => pid !== victim), Number(successor)]
    return Number(successor)
  }

  it('loses at most its running calls when it is killed: the other serves, and a new worker replaces it', async () => {
    const { url, workers: first } = crew
    // A connection on its way to the killed process can stay open until the client gives up.
    const load = startLoad(url, 'pid', { patience: 20_000 })
    await load.answers(100)
    const successor = await successorOf(first[0] ?? 0, 'SIGKILL')
    await load.answers(100)
    const { failures, texts } = await load.stop()
    // Four callers, and one connection that may have been on its way to the process.
    expect(failures.length).to.be.at.most(5)
    expect([...texts.keys()].sort()).to.deep.equal([...first, successor].map(String).sort())
  })

  it('is replaced after SIGTERM, when its running calls are complete', async () => {
    await successorOf(workers[0] ?? 0, 'SIGTERM')
    const answers = await Promise.all([...Array(20)].map(() => callText(crew.url, 'pid')))
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
    await successorOf(victim, 'SIGKILL')
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const ends = linesOf(stderr).filter(({ msg }) => msg.startsWith('a worker ended'))
    expect(ends.map(({ worker, exitCode, signal }) => [worker, exitCode, signal])).to.deep.equal(ended)
    expect(ends[0]).to.include({ msg: 'a worker ended; another is started', serving: 1 })
    expect(code).to.equal(0)
  })
})

describe('workers that fail to restart', () => {
  it('are restarted after a delay, which the log reports, until they serve again', async () => {
    const before = "import { existsSync } from 'node:fs'\nif (existsSync('broken')) throw new Error('no database')"
    const { running, folder, workers } = await startWorkers(2, workersConfig({ before }))
    await writeFile(join(folder, 'broken'), '')
    for (const pid of workers) process.kill(pid, 'SIGKILL')
    await running.logged(/no worker is left; another is started/)
    await running.logged(/"wait":200,/)
    await rm(join(folder, 'broken'))
    const [, url = ''] = await running.logged(/"url":"([^"]+)","serving":\d,"msg":"a worker serves"/)
    expect(await callText(url, 'pid')).to.match(/^\d+$/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const tries = linesOf(stderr).filter(({ msg }) => msg.startsWith('a worker could not start'))
    for (const { problem, serving, exitCode } of tries) {
      expect(problem).to.match(/^mcp\.config\.mjs:\d+: cannot be loaded: no database$/)
      expect([serving, exitCode]).to.deep.equal([0, 2])
    }
    expect(tries.length).to.be.above(0)
    expect(code).to.equal(0)
  })
})
