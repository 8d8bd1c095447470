// `mcp-host tasks`: lists, follows and cancels the tasks of whoever it is at a host, as a process of its own.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { taskClient } from '../plugins/tasks/support/task-client.ts'
import { type Bench, createBench, startTasks } from '../plugins/tasks/support/task-tools.ts'
import { stopHosts } from '../support/start-host.ts'
import { type Ended, runCli, startCli, stopAll } from './in-process.ts'

describe('mcp-host tasks', function () {
  this.timeout(60_000)
  let url: string
  let folder: string
  let bench: Bench
  before(async () => {
    bench = createBench()
    ;({ url } = await startTasks(bench))
    folder = await makeFolder({})
  })
  after(async () => {
    await stopAll()
    await stopHosts()
    await removeFolders()
  })

  const args = (...more: string[]) => ['tasks', url, '--header', 'X-User: ann', ...more]
  const run = (...more: string[]): Promise<Ended> => runCli(args(...more), folder, { MCP_HOST_HOME: folder })

  it('lists those of the caller alone, as a table and as JSON', async () => {
    const own = await taskClient(url, 'ann').begin('ask')
    const other = await taskClient(url, 'bob').begin('ask')
    await taskClient(url, 'ann').until(own, 'input_required')
    const [table, json] = await Promise.all([run(), run('--json')])
    expect([table.code, json.code], table.stderr + json.stderr).to.deep.equal([0, 0])
    expect(table.stdout)
      .to.match(/^task +tool +status/)
      .and.to.include(own)
      .and.to.include('input_required')
    expect(table.stdout).not.to.include(other)
    expect(JSON.parse(json.stdout)[0]).to.include({ taskId: own, tool: 'ask', status: 'input_required' })
  })

  it('follows one until it is over, and shows its result', async () => {
    const taskId = await taskClient(url, 'ann').begin('slow', { key: '1' })
    const running = startCli(args('--follow', taskId), folder, { MCP_HOST_HOME: folder })
    await running.printed(/working/)
    bench.open('1')
    const { code, stdout, stderr } = await running.ended
    expect(code, stderr).to.equal(0)
    expect(stdout).to.match(/completed[\s\S]*done 1/)
  })

  it('cancels one, and says what is wrong where it cannot', async () => {
    const client = taskClient(url, 'ann')
    const taskId = await client.begin('ask')
    const { code, stderr } = await run('--cancel', taskId)
    expect(code, stderr).to.equal(0)
    expect((await client.get(taskId)).status).to.equal('cancelled')
    const unknown = await run('--cancel', 'nothing')
    expect([unknown.code, unknown.stderr]).to.satisfy(
      ([code, words]: [number, string]) => code === 1 && words.includes('-32602'),
    )
    const both = await run('--cancel', taskId, '--follow', taskId)
    expect(both.code).to.equal(2)
    const none = await runCli(['tasks', `${url}/off`], folder, { MCP_HOST_HOME: folder })
    expect(none.code).to.equal(1)
    expect(none.stderr).to.include('it has no tasks')
  })
})
