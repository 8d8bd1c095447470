// Tools called through call_tool: progress, logging, elicitation, cancellation, headers and extension keys.
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import type { InternalHost } from '../../../core/internal.ts'
import { META } from '../../../core/transport.ts'
import { APP_SCHEMA } from '../../../plugins/apps/app-schema.ts'
import { defineApp } from '../../../plugins/apps/define-app.ts'
import { TASK_SCHEMA } from '../../../plugins/tasks/task-key.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { modern, modernRequest } from '../../support/rpc.ts'
import { nextMessage, openSession, postOpen, readRest } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'

after(stopHosts)

const runs: string[] = []
const ID = 'com.example/later'
const requestedSchema = { type: 'object' as const, properties: { ok: { type: 'boolean' as const } } }
const aborted: string[] = []

const TOOLS = [
  defineTool({
    name: 'ask',
    input: { type: 'object', properties: { what: { type: 'string' } } },
    async handler({ what }, { elicit }) {
      const { action } = await elicit({ message: `May ${what}?`, requestedSchema })
      runs.push(`${what} ${action}`)
      return `${what}: ${action}`
    },
  }),
  defineTool({
    name: 'talk',
    handler(_args, { progress, log }) {
      progress(1, 2, 'half')
      log('warning', 'careful')
      return 'told'
    },
  }),
  defineTool({
    name: 'wait',
    input: { type: 'object', properties: { mark: { type: 'string' } } },
    handler: ({ mark }, { signal }) =>
      new Promise(resolve => {
        runs.push(`waits ${mark}`)
        signal.addEventListener('abort', () => {
          aborted.push(`${mark}`)
          resolve('ended')
        })
      }),
  }),
  defineTool({
    name: 'routed',
    input: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
    handler: ({ region }) => `in ${region}`,
  }),
  defineTool({ name: 'task', task: 'optional', handler: () => 'at once' }),
  defineTool({ name: 'page', app: defineApp({ name: 'page', html: '<p>a page</p>' }), handler: () => 'a page' }),
  defineTool({ name: 'button', _meta: { ui: { visibility: ['app'] } }, handler: () => 'pressed' }),
  defineTool({ name: 'both', _meta: { ui: { visibility: ['model', 'app'] } }, handler: () => 'both' }),
]

function addKeys(host: InternalHost) {
  const added = host.extension(ID, {
    results: { 'tools/call': ['later'] },
  })
  host.toolKey('app', { meta: (_, { name }) => ({ 'example.com/page': name }) })
  host.toolKey('task', {
    onCall: (call, _, run, { name }) => (added.settingsOf(call) ? added.result('later', { of: name }) : run()),
  })
}

const through = (name: string, args: object = {}) => ({ name: 'call_tool', arguments: { name, arguments: args } })
const CAN_ANSWER = { meta: { [META.clientCapabilities]: { elicitation: {} } } }
const ANSWER = { inputResponses: { 'elicit-1': { action: 'accept', content: { ok: true } } } }

describe('Tools called through call_tool', () => {
  let url: string
  before(async () => {
    const keys = plugin(addKeys, { toolKeys: { app: APP_SCHEMA, task: TASK_SCHEMA } })
    const plugins = { 'transport-streamable': {}, bearer: bearerJson(), keys }
    const routes = { '/': { toolsets: 'all', search: {} } }
    ;({ url } = await startHost({ toolsets: { all: TOOLS }, routes, plugins }))
  })
  const call = async (params: Record<string, unknown>, options: Parameters<typeof modern>[3] = CAN_ANSWER) =>
    (await modern(url, 'tools/call', params, options)).message

  it('elicit input and continue when call_tool is called again with its state', async () => {
    const asked = await call(through('ask', { what: 'a' }))
    expect(asked.result).to.include({ resultType: 'input_required' })
    expect(asked.result.inputRequests['elicit-1'].params.message).to.equal('May a?')
    const { requestState } = asked.result
    const answered = await call({ ...through('ask', { what: 'a' }), requestState, ...ANSWER })
    expect(answered.result.content[0].text).to.equal('a: accept')
    expect(runs.splice(0)).to.deep.equal(['a accept'])
    // The state is of this call, by whatever name: nothing else, and nobody else, opens it.
    const own = await call({ name: 'ask', arguments: { what: 'a' }, requestState, ...ANSWER })
    expect(own.result.content[0].text).to.equal('a: accept')
    runs.length = 0
    const others: ReadonlyArray<readonly [params: Record<string, unknown>, headers?: Record<string, string>]> = [
      [through('ask', { what: 'b' })],
      [through('ask')],
      [through('ask', { what: 'a' }), as({ subject: 'ann' })],
      [{ name: 'call_tool', arguments: { name: 'ask', arguments: 'a' } }],
      [{ name: 'ask', arguments: { what: 'b' } }],
    ]
    let refused = 0
    for (const [params, headers = {}] of others) {
      const { result, error } = await call({ ...params, requestState, ...ANSWER }, { ...CAN_ANSWER, headers })
      if (error?.code === -32602 || result?.isError === true) refused += 1
    }
    expect(refused).to.equal(others.length)
    expect(runs).to.deep.equal([])
  })

  it('elicit input with a server request in a session', async () => {
    const session = await openSession(url, { capabilities: { elicitation: {} } })
    const stream = await session.call('call_tool', { name: 'ask', arguments: { what: 'it' } })
    const question = await nextMessage(stream)
    expect(question).to.include({ method: 'elicitation/create' })
    await session.send({ id: question.id, result: { action: 'decline' } })
    expect((await nextMessage(stream)).result.content[0].text).to.equal('it: decline')
    runs.length = 0
  })

  it('do not send requests to clients without the capability', async () => {
    const { error } = await call(through('ask', { what: 'a' }), {})
    expect(error).to.include({ code: -32021 })
    expect(error.message).to.contain('"ask" needs elicitation')
  })

  it('report progress with the token of the call, and log messages', async () => {
    const meta = { progressToken: 'p', [META.logLevel]: 'info' }
    const { messages } = await modern(url, 'tools/call', through('talk'), { meta })
    expect(
      messages.slice(0, 2).map(({ method, params }) => [method, params.progressToken ?? params.level]),
    ).to.deep.equal([
      ['notifications/progress', 'p'],
      ['notifications/message', 'warning'],
    ])
    const session = await openSession(url)
    const seen = await readRest(await session.call('call_tool', { name: 'talk' }))
    expect(seen.map(({ method }) => method)).to.deep.equal([
      'notifications/progress',
      'notifications/message',
      undefined,
    ])
  })

  it('are aborted when the call is cancelled or its client disconnects', async () => {
    const session = await openSession(url)
    const opened = session.call('call_tool', { name: 'wait', arguments: { mark: 'session' } }, { id: 'w' })
    await eventually('it runs', () => runs.includes('waits session'))
    await session.send({ method: 'notifications/cancelled', params: { requestId: 'w' } })
    await eventually('it has ended', () => aborted.includes('session'))
    ;(await opened).drop()
    const leaving = new AbortController()
    const left = Promise.allSettled([
      modern(url, 'tools/call', through('wait', { mark: 'left' }), { init: { signal: leaving.signal } }),
    ])
    await eventually('it runs', () => runs.includes('waits left'))
    leaving.abort()
    await eventually('it has ended', () => aborted.includes('left'))
    expect((await left)[0]).to.have.property('status', 'rejected')
    runs.length = 0
  })

  it('do not require x-mcp-header parameters, but reject mismatching headers', async () => {
    const ask = async (headers: Record<string, string>, params = through('routed', { region: 'north' })) => {
      const { status, message } = await modern(url, 'tools/call', params, { headers })
      return [status, message.error?.code ?? message.result.content[0].text]
    }
    expect(await ask({})).to.deep.equal([200, 'in north'])
    expect(await ask({ 'Mcp-Param-Region': 'north' })).to.deep.equal([200, 'in north'])
    expect(await ask({ 'Mcp-Param-Region': 'south' })).to.deep.equal([400, -32020])
    expect(await ask({ 'Mcp-Param-Region': 'north' }, through('routed'))).to.deep.equal([400, -32020])
    const own = { name: 'routed', arguments: { region: 'north' } }
    expect(await ask({}, own as never), 'by its own name').to.deep.equal([400, -32020])
    expect(await ask({ 'Mcp-Name': 'routed' }), 'Mcp-Name is that of the body').to.deep.equal([400, -32020])
  })

  it('receive extension keys of `_meta`', async () => {
    const meta = { [META.clientCapabilities]: { extensions: { [ID]: {} } } }
    expect((await call(through('task'), { meta })).result).to.include({ resultType: 'later', of: 'task' })
    expect((await call(through('task'))).result.content[0].text).to.equal('at once')
  })

  it('exclude tools visible only to apps', async () => {
    const query = { name: 'find_tools', arguments: { query: 'button both page' } }
    const found = (await call(query)).result.structuredContent.tools.map(({ name }: { name: string }) => name)
    expect(found.sort()).to.deep.equal(['both', 'page'])
    const refused = await call(through('button'))
    expect([refused.result.isError, refused.result.content[0].text]).to.deep.equal([
      true,
      'There is no tool "button". find_tools finds those that there are.',
    ])
    expect((await call(through('both'))).result.content[0].text).to.equal('both')
    expect((await call({ name: 'button' })).result.content[0].text).to.equal('pressed')
  })

  it('end their stream with the result', async () => {
    const request = modernRequest('tools/call', through('talk'), { meta: { progressToken: 1 } })
    const messages = await readRest(await postOpen(url, request.body, request.headers as Record<string, string>))
    expect(messages.map(message => message.method ?? message.result.content[0].text)).to.deep.equal([
      'notifications/progress',
      'told',
    ])
  })
})
