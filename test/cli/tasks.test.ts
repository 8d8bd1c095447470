// Tests `mcp-host tasks`: list, follow and cancel tasks of the caller.
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { taskClient } from '../plugins/tasks/support/task-client.ts'
import { type Bench, createBench, startTasks } from '../plugins/tasks/support/task-tools.ts'
import { stopHosts } from '../support/start-host.ts'
import { type Ended, runCli, startCli, stopAll } from './in-process.ts'

describe('mcp-host tasks', () => {
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

  it('lists tasks of the caller only, as a table and as JSON', async () => {
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

  it('follows a task until it ends, and prints its result', async () => {
    const taskId = await taskClient(url, 'ann').begin('slow', { key: '1' })
    const running = startCli(args('--follow', taskId), folder, { MCP_HOST_HOME: folder })
    await running.printed(/working/)
    bench.open('1')
    const { code, stdout, stderr } = await running.ended
    expect(code, stderr).to.equal(0)
    expect(stdout).to.match(/completed[\s\S]*done 1/)
  })

  it('cancels a task, and reports why it cannot', async () => {
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
    expect(none.stderr).to.include('it does not support tasks')
  })

  const startCall = (tool: string, ...more: string[]) =>
    startCli(['call', url, tool, ...more, '--header', 'X-User: ann'], folder, { MCP_HOST_HOME: folder })

  it('call waits for the result of a task, prints its state, and answers its requests', async () => {
    const [required, ask, fails] = [startCall('required', 'key=1'), startCall('ask'), startCall('wrong')]
    const running = startCall('reports', 'key=call')
    await running.logged(/working {2}half of it\n/)
    bench.open('call')
    expect(await running.ended).to.include({ code: 0, stdout: 'done call\n' })
    expect(await required.ended).to.include({ code: 0, stdout: 'done 1\n' })
    // No person is there, so the request is declined.
    const asked = await ask.ended
    expect(asked).to.include({ code: 0, stdout: 'hello undefined\n' })
    expect(asked.stderr).to.match(/^input_required/m)
    const wrong = await fails.ended
    expect(wrong).to.include({ code: 1, stdout: 'the printer is on fire\n' })
    expect(wrong.stderr).to.include('mcp-host: the tool wrong failed\n')
  })

  it('call --detach prints the id of the task, and does not wait', async () => {
    const { code, stdout, stderr } = await startCall('slow', 'key=detached', '--detach').ended
    expect([code, stdout]).to.satisfy(([exit, text]: [number, string]) => exit === 0 && /^[\w-]+\n$/.test(text))
    const taskId = stdout.trim()
    expect(stderr).to.equal(`follow the task with: mcp-host tasks ${url} --follow ${taskId}\n`)
    bench.open('detached')
    expect((await run('--follow', taskId)).stdout).to.match(/completed[\s\S]*done detached/)
    const json = await startCall('slow', 'key=detached', '--detach', '--json').ended
    expect(JSON.parse(json.stdout)).to.include.keys('taskId', 'status', 'ttlMs')
  })

  it('call cancels the task on Ctrl-C', async () => {
    const running = startCall('slow', 'key=interrupted')
    await running.logged(/^working/m)
    running.child.kill('SIGINT')
    expect((await running.ended).code).to.equal(130)
    expect(bench.aborted).to.include('interrupted')
  })
})
