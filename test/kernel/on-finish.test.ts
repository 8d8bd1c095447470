// Tests host.onFinish: one record per call with its outcome.
import { expect } from 'chai'
import { defineTool, HostError, ToolError } from '../../core/index.ts'
import type { CallRecord } from '../../core/plugin.ts'
import { META } from '../../core/transport.ts'
import { ALL_CAPABILITIES } from '../fixtures/asking-client.ts'
import { plugin, withPlugins } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const waiting = new Set<() => void>()
const toolset = [
  defineTool({ name: 'hello', handler: () => 'hello' }),
  defineTool({ name: 'succeeds', handler: () => ({ content: [{ type: 'text', text: 'done' }], isError: false }) }),
  defineTool({
    name: 'fails',
    handler() {
      throw new ToolError('no luck')
    },
  }),
  defineTool({
    name: 'asks',
    async handler(_args, ctx) {
      await ctx.elicit({
        message: 'sure?',
        requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } },
      })
      return 'asked'
    },
  }),
  defineTool({
    name: 'waits',
    handler: (_args, { signal }) =>
      new Promise<string>(resolve => {
        signal.addEventListener('abort', () => resolve('too late'))
        for (const began of waiting) began()
      }),
  }),
]

function createObserver() {
  const records: CallRecord[] = []
  // on-finish-requests.test.ts has the records of HTTP requests without a call.
  const observer = plugin(host => host.onFinish(record => void (record.call && records.push(record))))
  const told = () => records.splice(0).map(({ method, outcome, error }) => [method, outcome, error?.kind])
  return { records, observer, told }
}

const config = (plugins: NonNullable<Parameters<typeof withPlugins>[0]>) =>
  withPlugins(plugins, { toolsets: { all: toolset } })

describe('host.onFinish', () => {
  it('reports each outcome once, whether from handler, plugin or host', async () => {
    const { records, observer, told } = createObserver()
    const refuses = plugin(host =>
      host.onCall((call, next) => {
        if (call.params['name'] === 'refused') throw new HostError('tooManyRequests')
        if (call.params['name'] === 'broken') throw new Error('a bug')
        return next()
      }),
    )
    const { url } = await startHost(config({ observer, refuses }))
    const call = (name: string) => modern(url, 'tools/call', { name })
    await call('hello')
    expect(records[0]?.milliseconds).to.be.within(0, 5_000)
    await call('succeeds')
    expect(told()).to.deep.equal([
      ['tools/call', 'ok', undefined],
      ['tools/call', 'ok', undefined],
    ])
    await call('fails')
    await call('unknown')
    await call('refused')
    await call('broken')
    await modern(url, 'acme/unknown')
    await modern(url, 'tools/list', { cursor: 5 })
    expect(told()).to.deep.equal([
      ['tools/call', 'tool_error', undefined],
      ['tools/call', 'error', 'invalidParams'],
      ['tools/call', 'error', 'tooManyRequests'],
      ['tools/call', 'error', 'internal'],
      ['_OTHER', 'error', 'methodNotFound'],
      ['tools/list', 'error', 'invalidParams'],
    ])
  })

  it('reports a call as soon as its response is written, so that its objects do not outlive it', async () => {
    const order: string[] = []
    const next = defineTool({
      name: 'next',
      handler() {
        setImmediate(() => order.push('next event loop phase'))
        return 'done'
      },
    })
    const observer = plugin(host =>
      host.onFinish(
        ({ method, bytesOut = 0 }) => void order.push(`${method}, ${bytesOut > 0 ? 'written' : 'pending'}`),
      ),
    )
    const { url } = await startHost(withPlugins({ observer }, { toolsets: { all: [next] } }))
    await modern(url, 'tools/call', { name: 'next' })
    await eventually('both', () => order.length === 2)
    expect(order).to.deep.equal(['tools/call, written', 'next event loop phase'])
  })

  it('reports a call that ends with an elicitation request, and its continuation', async () => {
    const { observer, told, records } = createObserver()
    const { url } = await startHost(config({ observer }))
    const send = async (more: object = {}) =>
      (
        await modern(
          url,
          'tools/call',
          { name: 'asks', ...more },
          { meta: { [META.clientCapabilities]: ALL_CAPABILITIES } },
        )
      ).message.result
    const { requestState } = await send()
    await eventually('a record of the call', () => records.length)
    expect(told()).to.deep.equal([['tools/call', 'input_required', undefined]])
    await send({ requestState, inputResponses: { 'elicit-1': { action: 'accept', content: { yes: true } } } })
    await eventually('a record of the call', () => records.length)
    expect(told()).to.deep.equal([['tools/call', 'ok', undefined]])
  })

  it('reports calls cancelled by disconnect and by notification', async () => {
    const { observer, told, records } = createObserver()
    const { url } = await startHost(config({ observer }))
    const began = () => new Promise<void>(resolve => waiting.add(resolve))
    const leaving = new AbortController()
    const first = began()
    const init = { signal: leaving.signal }
    const asked = modern(url, 'tools/call', { name: 'waits' }, { init }).catch(() => undefined)
    await first
    leaving.abort()
    await asked
    await eventually('a record of the call', () => records.length)
    expect(told()).to.deep.equal([['tools/call', 'cancelled', undefined]])
    waiting.clear()
    const session = await openSession(url)
    told()
    const second = began()
    const stream = session.call('waits', {}, { id: 'mine' })
    await second
    await session.send({ method: 'notifications/cancelled', params: { requestId: 'mine' } })
    await stream
    await eventually('a record of the call', () => records.length)
    expect(told()).to.deep.equal([['tools/call', 'cancelled', undefined]])
    waiting.clear()
  })

  it('is skipped on routes where its plugin is off', async () => {
    const { observer, told } = createObserver()
    const routes = { '/a': { toolsets: 'all' }, '/b': { toolsets: 'all', plugins: { observer: false } } } as const
    const { url } = await startHost({ ...config({ observer }), routes })
    await modern(`${url}/a`, 'tools/list')
    await modern(`${url}/b`, 'tools/list')
    expect(told()).to.have.length(1)
  })

  it('logs observer errors without affecting the response or other observers', async () => {
    const { observer, told } = createObserver()
    const throws = plugin(host =>
      host.onFinish(() => {
        throw new Error('at once')
      }),
    )
    const rejects = plugin(host => host.onFinish(() => Promise.reject(new Error('later'))))
    const never = plugin(host => host.onFinish(() => new Promise(() => undefined)))
    const { url, log } = await startHost(config({ throws, rejects, never, observer }))
    const { status, message } = await modern(url, 'tools/call', { name: 'hello' })
    expect([status, message.result.content[0].text]).to.deep.equal([200, 'hello'])
    expect(told()).to.have.length(1)
    const errors = log.filter(({ level }) => level === 'error').map(({ err }) => String(err))
    expect(errors).to.deep.equal(['Error: at once', 'Error: later'])
  })
})
