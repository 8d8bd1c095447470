// Tests workers over time: hanging reloads, a blocked event loop, and a crash loop.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { stopAll } from '../cli/run-cli.ts'
import { linesOf, reload, startWorkers, version, workersConfig } from '../cli/start-workers.ts'
import { removeFolders } from '../config/folder.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { modern } from '../support/rpc.ts'
import { callText } from '../support/steady-load.ts'

after(stopAll)
after(removeFolders)

/** Milliseconds that a worker may take; the first test waits 51 s for eight of them. */
const LIMIT = 230_000
const HANGING = "console.log('hangs')\nawait new Promise(resolve => setTimeout(resolve, 3_600_000))"

describe('workers', () => {
  // The first waits, and the others run meanwhile, one after the other.
  const it = concurrentIt({ atOnce: 2 })

  it('backs off to one restart every 30 s in a crash loop and logs it', async () => {
    const before = "import { existsSync } from 'node:fs'\nif (existsSync('broken')) throw new Error('no database')"
    const { running, folder, workers } = await startWorkers(1, workersConfig({ before }))
    await writeFile(join(folder, 'broken'), '')
    process.kill(workers[0] ?? 0, 'SIGKILL')
    await running.logged(/"wait":30000,"serving":0/, LIMIT)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const waits = linesOf(stderr).map(({ wait }) => wait)
    expect(waits).to.deep.equal([100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000])
    expect(code).to.equal(0)
  })

  it('kills and replaces a worker with a blocked event loop unless it recovers', async () => {
    const held = `defineTool({
      name: 'held',
      input: { type: 'object', properties: { seconds: { type: 'number' } }, required: ['seconds'] },
      handler({ seconds }) {
        console.log('held: ' + process.pid)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, seconds * 1_000)
        return 'over'
      },
    })`
    const { running, url } = await startWorkers(2, workersConfig({ tool: held }))
    const hold = async (seconds: number) => {
      const end = modern(url, 'tools/call', { name: 'held', arguments: { seconds } }).then(
        ({ message }) => message.result.content[0].text,
        () => 'broken off',
      )
      const [, pid] = await running.printed(/held: (\d+)\n$/)
      return { pid: Number(pid), end }
    }
    const short = await hold(30)
    const SILENT = /"code":"MH3122","worker":(\d+),"seconds":20,/
    expect(Number((await running.logged(SILENT, LIMIT))[1])).to.equal(short.pid)
    await running.logged(new RegExp(`"code":"MH3121","worker":${short.pid},`), LIMIT)
    expect(await short.end).to.equal('over')
    const long = await hold(3_600)
    await running.logged(new RegExp(`"code":"MH3123","worker":${long.pid},"seconds":60,`), LIMIT)
    await running.logged(new RegExp(`"worker":${long.pid},"exitCode":null,"signal":"SIGKILL"[^]*"serving":2`), LIMIT)
    expect(await long.end).to.equal('broken off')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })

  it('SIGHUP during a hanging reload restarts it with the current config', async () => {
    const crew = await startWorkers(2, version('old'))
    const { running, url } = crew
    await reload(crew, version('never', HANGING))
    await running.printed(/^hangs$/m)
    await reload(crew, version('new'))
    await running.logged(/"code":"MH3103"/)
    expect(await callText(url, 'version')).to.equal('new')
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    expect(linesOf(stderr).filter(({ level }) => level >= 40)).to.deep.equal([])
    expect(code).to.equal(0)
  })

  it('exits on SIGTERM while a new worker hangs', async () => {
    const crew = await startWorkers(2, version('old'))
    await reload(crew, version('never', HANGING))
    await crew.running.printed(/^hangs$/m)
    crew.running.child.kill('SIGTERM')
    const { code, stdout } = await crew.running.ended
    expect(stdout).to.match(/\nstopped; running requests: 0 finished, 0 cancelled\n$/)
    expect(code).to.equal(0)
  })
})
