// Tests an uncaught exception in a worker: running calls complete, another worker replaces it, and the log has the
// reason.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { callText } from '../support/steady-load.ts'
import { stopAll } from './run-cli.ts'
import { linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopAll)
after(removeFolders)

describe('a worker with an uncaught exception', () => {
  const BREAK = `defineTool({
    name: 'break',
    async handler() {
      setTimeout(() => { throw new Error('a timer broke') })
      await new Promise(resolve => setTimeout(resolve, 200))
      return 'answered'
    },
  })`

  it('drains, is replaced meanwhile, and its error is in the log', async () => {
    const { running, url, workers } = await startWorkers(2, workersConfig({ tool: BREAK }))
    expect(await callText(url, 'break')).to.equal('answered')
    await running.logged(/"serving":2,"msg":"a worker serves"/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const lines = linesOf(stderr)
    const [words] = lines.filter(({ code }) => code === 'MH3106')
    expect(words.err.message).to.equal('a timer broke')
    expect(workers).to.include(words.pid)
    const [failed, ...more] = lines.filter(({ msg }) => msg.startsWith('a worker '))
    expect([failed.worker, failed.problem, failed.wait]).to.deep.equal([words.pid, 'a timer broke', 100])
    expect(failed.msg).to.equal('a worker failed; another is started')
    expect(more.map(({ msg }) => msg)).to.deep.equal(['a worker serves'])
    expect(code).to.equal(0)
  })

  it('is restarted with increasing delays', async () => {
    const before = `import { existsSync } from 'node:fs'
setInterval(() => { if (existsSync('broken')) throw new Error('broken again') }, 20)`
    const { running, folder } = await startWorkers(1, workersConfig({ before }))
    await writeFile(join(folder, 'broken'), '')
    await running.logged(/"wait":200/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const failures = linesOf(stderr).filter(({ msg }) => msg.includes('another is started'))
    expect(failures.slice(0, 2).map(({ wait, problem }) => [wait, problem])).to.deep.equal(
      [100, 200].map(wait => [wait, 'broken again']),
    )
    expect(code).to.equal(0)
  })
})
