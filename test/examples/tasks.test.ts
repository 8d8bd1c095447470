// Tests that examples/tasks starts unchanged and its tools run as tasks.
import { join } from 'node:path'
import { expect } from 'chai'
import { loadHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { expectMissing, type TaskClient, taskClient } from '../plugins/tasks/support/task-client.ts'
import { concurrentIt } from '../support/concurrent-it.ts'
import { modern } from '../support/rpc.ts'
import { createTestLog } from '../support/start-host.ts'

describe('examples/tasks', () => {
  const folder = join(import.meta.dirname, '../../examples/tasks')
  const FORM = { elicitation: { form: {} } }
  let host: Host | undefined
  let url: string
  let client: TaskClient
  before(async () => {
    process.env['PORT'] = '0'
    host = await loadHost({ cwd: folder, file: join(folder, 'mcp.config.ts') }, createTestLog())
    await host.listen()
    url = `${host.url}/mcp`
    client = taskClient(url, undefined, FORM)
  })
  after(async () => {
    delete process.env['PORT']
    await host?.close({ grace: 0 })
  })

  // Each task of the example runs for seconds.
  const it = concurrentIt()
  const answer = (content: object) => ({ action: 'accept', content })

  it('runs a task with progress and supports cancellation', async () => {
    const [wanted, unwanted] = [
      await client.begin('sales_report', { year: 2026 }),
      await client.begin('sales_report', { year: 2025 }),
    ]
    await client.cancel(unwanted)
    expect(await client.get(unwanted)).to.include({ status: 'cancelled' })
    const { status, statusMessage, result } = await client.until(wanted)
    // Its last word may be of a second ago.
    expect([status, statusMessage]).to.deep.equal(['completed', undefined])
    expect(Object.keys(result.structuredContent.sales)).to.have.lengthOf(12)
  })

  it('completes a task after user confirmation, repeats an invalid answer, and never runs twice', async () => {
    expectMissing(await modern(url, 'tools/call', { name: 'close_month', arguments: { month: 'mar' } }))
    const id = await client.begin('close_month', { month: 'mar' })
    expect((await client.until(id, 'input_required')).inputRequests).to.have.all.keys('elicit-1')
    await client.update(id, { 'elicit-1': answer({ confirm: 'yes' }) })
    expect((await client.until(id, 'input_required')).inputRequests).to.have.all.keys('elicit-2')
    // Too late: the first was answered.
    await client.update(id, { 'elicit-1': answer({ confirm: true }) })
    expect(await client.get(id)).to.include({ status: 'input_required' })
    await client.update(id, { 'elicit-2': answer({ confirm: true }) })
    expect((await client.until(id)).result.content[0].text).to.equal('mar is closed.')
    const again = await client.until(await client.begin('close_month', { month: 'mar' }))
    expect(again.result).to.include({ isError: true })

    const left = await client.begin('close_month', { month: 'apr' })
    await client.until(left, 'input_required')
    await client.update(left, { 'elicit-1': { action: 'decline' } })
    expect((await client.until(left)).result.content[0].text).to.equal('apr stays open.')
  })

  it('requests confirmation before the task starts and rejects clients without elicitation', async () => {
    const args = { name: 'send_reminders', arguments: { month: 'jan' } }
    const { result } = (await client.send('tools/call', args)).message
    expect(result).to.include({ resultType: 'input_required' })
    const inputResponses = { 'elicit-1': answer({ tone: 'firm' }) }
    const { requestState } = result
    const made = (await client.send('tools/call', { ...args, requestState, inputResponses })).message.result
    expect(made).to.include({ resultType: 'task' })
    expect((await client.until(made.taskId)).result.content[0].text).to.equal('3 firm reminders for jan were sent.')

    const cannot = taskClient(url, undefined, {})
    const refused = await cannot.send('tools/call', args)
    expect(refused.message.error.data).to.deep.equal({ requiredCapabilities: { elicitation: { form: {} } } })
    // The same question within a task ends it, after what was done before.
    const { result: wrong } = await cannot.until(await cannot.begin('close_month', { month: 'may' }))
    expect([wrong.isError, wrong.content[0].text]).to.deep.equal([
      true,
      'This requires a client that declares {"elicitation":{"form":{}}}.',
    ])
  })
})
