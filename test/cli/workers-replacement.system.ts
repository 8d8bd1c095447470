// Tests a worker that replaces an ended one after files changed: it reads the new files, and the log has a warning.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { stopAll } from './run-cli.ts'
import { linesOf, startWorkers, workersConfig } from './start-workers.ts'

after(stopAll)
after(removeFolders)

describe('Worker that replaces another after an edit', () => {
  it('causes a warning with the changed file, until a reload', async () => {
    const config = workersConfig({
      before: "import { text } from './text.mjs'",
      tool: "defineTool({ name: 'text', handler: () => text })",
    })
    // A module of a module: what the primary has to know of is not in the config's own text.
    const first = 'export const text = 1\n'
    const { running, folder, workers } = await startWorkers(2, config, {}, { 'text.mjs': first })
    const [victim = 0, other = 0] = workers
    process.kill(victim, 'SIGKILL')
    await running.logged(/"msg":"a worker serves"/)
    await writeFile(join(folder, 'text.mjs'), 'export const text = 2\n')
    process.kill(other, 'SIGKILL')
    const [line] = await running.logged(/^.*"msg":"the workers serve different configs.*$/m)
    expect(JSON.parse(line).changed).to.deep.equal(['text.mjs'])
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const warned = linesOf(stderr).filter(({ level }) => level === 40)
    expect([warned.length, code]).to.deep.equal([1, 0])
  })
})
