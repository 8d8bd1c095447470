// The official @modelcontextprotocol/ext-tasks requester with the official client against a host.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { createTaskSessionFromClient, type TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client'
import { expect } from 'chai'
import { MODERN_REVISION } from '../../../core/transport.ts'
import { eventually } from '../../support/eventually.ts'
import { post } from '../../support/rpc.ts'
import { stopHosts } from '../../support/start-host.ts'
import { TASKS } from './support/task-client.ts'
import { type Bench, createBench, startTasks } from './support/task-tools.ts'

const INFO = { name: 'official', version: '1.0.0' }
const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {}, extensions: { [TASKS]: {} } }

type Request = { readonly method: string; readonly params: Record<string, unknown> }

/** A request of 2026-07-28, with the headers that name it. */
function dispatcher(url: string, sent: string[]) {
  let id = 0
  return async (request: unknown) => {
    const { method, params } = request as Request
    sent.push(method)
    const name = params['taskId'] ?? params['name']
    const { message } = await post(url, JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }), {
      'MCP-Protocol-Version': MODERN_REVISION,
      'Mcp-Method': method,
      ...(typeof name === 'string' && { 'Mcp-Name': name }),
    })
    if (message.error) return { kind: 'error' as const, error: message.error }
    return { kind: 'result' as const, result: message.result }
  }
}

describe('Official tasks requester', () => {
  let bench: Bench
  let url: string
  let session: TaskEnabledSession
  const open: Array<{ close(): Promise<void> }> = []
  const sent: string[] = []
  const asked: string[] = []

  /** As a process of its own has it. */
  async function openSession(): Promise<TaskEnabledSession> {
    const client = new Client(INFO, {
      capabilities: CAPABILITIES,
      versionNegotiation: { mode: { pin: MODERN_REVISION } },
    })
    await client.connect(new StreamableHTTPClientTransport(new URL(url)))
    const made = createTaskSessionFromClient(client, {
      endpointId: 'test',
      rawDispatch: dispatcher(url, sent),
      v2RequestFraming: { protocolVersion: MODERN_REVISION, clientInfo: INFO, clientCapabilities: CAPABILITIES },
      async onInputRequest(request) {
        asked.push(request.kind)
        const answers = {
          elicitation: { action: 'accept', content: { name: 'Ann' } },
          sampling: { model: 'm', role: 'assistant', content: { type: 'text', text: 'x' } },
          roots: { roots: [{ uri: 'file:///a' }] },
        }
        return answers[request.kind] as never
      },
    })
    open.push(made, client)
    return made
  }

  before(async () => {
    bench = createBench()
    ;({ url } = await startTasks(bench))
    session = await openSession()
  })
  after(async () => {
    for (const one of open.splice(0)) await one.close()
    await stopHosts()
  })

  const textOf = (outcome: { status: string; result?: unknown }) =>
    (outcome.result as { content: Array<{ text: string }> } | undefined)?.content[0]?.text

  it('calls a tool, polls the task and receives its result', async () => {
    const execution = await session.callTool('slow', { key: 'a' })
    expect(execution.kind).to.equal('task')
    bench.open('a')
    const { outcome } = await execution.settle()
    expect([outcome.status, textOf(outcome)]).to.deep.equal(['completed', 'done a'])
    expect(sent).to.include.members(['tools/call', 'tasks/get'])
  })

  it('answers input requests: elicitation, two at once, sampling, roots', async () => {
    const results = []
    for (const name of ['ask', 'ask-twice', 'ask-all']) {
      const execution = await session.callTool(name)
      const { outcome } = await execution.settle()
      results.push(textOf(outcome))
    }
    expect(results).to.deep.equal(['hello Ann', 'Ann and Ann', 'm file:///a'])
    expect(asked.sort()).to.deep.equal(['elicitation', 'elicitation', 'elicitation', 'roots', 'sampling'])
    expect(sent).to.include('tasks/update')
  })

  it('cancels a task, and its handler stops', async () => {
    const execution = await session.callTool('slow', { key: 'b' })
    await eventually('it runs', () => bench.began.includes('b'))
    await execution.cancel()
    const { outcome } = await execution.settle()
    expect(outcome.status).to.equal('cancelled')
    await eventually('its handler hears of it', () => bench.aborted.includes('b'))
  })

  it('receives the error of a failed task, and the result of a tool error', async () => {
    const failed = await (await session.callTool('refuses')).settle()
    expect(failed.outcome.status).to.equal('failed')
    expect(failed.outcome).to.have.property('error').that.includes({ code: -32602 })
    const wrong = await (await session.callTool('wrong')).settle()
    expect(wrong.outcome.status).to.equal('completed')
    expect(wrong.outcome).to.have.nested.property('result.isError', true)
  })

  it('resumes a task after it stopped polling', async () => {
    const execution = await session.callTool('slow', { key: 'c' })
    if (execution.kind !== 'task') throw new Error('it is no task')
    const reference = execution.serializeReference()
    await execution.detach()
    bench.open('c')
    const resumed = await (await openSession()).resumeTask(reference)
    const { outcome } = await resumed.settle()
    expect(textOf(outcome)).to.equal('done c')
  })

  it('receives an immediate result from a tool without `task`', async () => {
    const execution = await session.callTool('plain', { key: 'd' })
    expect(execution.kind).to.equal('immediate')
    expect(textOf((await execution.settle()).outcome)).to.equal('done d')
  })
})
