import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { modern, type RpcMessage, type RpcOptions } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const count = defineTool({
  name: 'count',
  input: { type: 'object', properties: { steps: { type: 'array', items: { type: 'number' } } }, required: ['steps'] },
  handler({ steps }, { progress }) {
    for (const step of steps as number[]) progress(step, 10)
    return 'counted'
  },
})
const chatter = defineTool({
  name: 'chatter',
  handler(_args, { log }) {
    for (const level of ['debug', 'info', 'warning', 'error', 'emergency'] as const) log(level, { level }, 'a-logger')
    return 'said'
  },
})

let url: string
before(async () => {
  ;({ url } = await startHost({ toolsets: { all: [count, chatter] }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const called = (name: string, args: object = {}, options: RpcOptions = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, options)
const withToken = (progressToken: string | number) => ({ meta: { progressToken } })
const progressOf = (messages: readonly RpcMessage[]) =>
  messages.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params.progress)

describe('Progress notifications', () => {
  it('are sent only for requests with a progress token, which they repeat', async () => {
    expect((await called('count', { steps: [1, 2] })).messages).to.have.length(1)
    for (const token of ['abc', '', 0, 7]) {
      const { messages } = await called('count', { steps: [1, 2] }, withToken(token))
      expect(messages[0].params.progressToken).to.equal(token)
      expect(progressOf(messages)).to.deep.equal([1, 2])
    }
  })

  it('must increase: a lower value is not sent', async () => {
    const { messages } = await called('count', { steps: [1, 1, 3, 2, 3, 3.5, -1, 4] }, withToken('t'))
    expect(progressOf(messages)).to.deep.equal([1, 3, 3.5, 4])
  })

  it('are not sent for a token that is not a string or number', async () => {
    const options = { meta: { progressToken: { a: 1 } } }
    expect((await called('count', { steps: [1] }, options)).messages).to.have.length(1)
  })
})

describe('Log messages in 2026-07-28', () => {
  it('are sent from the log level of the request upwards', async () => {
    const levels = async (level: string) =>
      (await called('chatter', {}, { meta: { [META.logLevel]: level } })).messages
        .filter(({ method }) => method === 'notifications/message')
        .map(({ params }) => params.level)
    expect(await levels('debug')).to.deep.equal(['debug', 'info', 'warning', 'error', 'emergency'])
    expect(await levels('notice')).to.deep.equal(['warning', 'error', 'emergency'])
    expect(await levels('emergency')).to.deep.equal(['emergency'])
  })

  it('contain level, data and logger', async () => {
    const { messages } = await called('chatter', {}, { meta: { [META.logLevel]: 'emergency' } })
    expect(messages[0]).to.deep.equal({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'emergency', data: { level: 'emergency' }, logger: 'a-logger' },
    })
  })

  it('are not sent without a log level, even after a request with one', async () => {
    await called('chatter', {}, { meta: { [META.logLevel]: 'debug' } })
    const { headers, messages } = await called('chatter')
    expect(headers.get('content-type')).to.equal('application/json')
    expect(messages).to.have.length(1)
  })
})
