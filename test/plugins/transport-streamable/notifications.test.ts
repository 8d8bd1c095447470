import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { META } from '../../../core/transport.ts'
import { modern, type RpcMessage, type RpcOptions } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
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

const BURST = 20_000
const burst = defineTool({
  name: 'burst',
  input: { type: 'object', properties: { kinds: { type: 'array', items: { type: 'string' } } }, required: ['kinds'] },
  async handler({ kinds }, { progress, log }) {
    for (let step = 1; step <= BURST; step++) {
      if (kinds.includes('progress')) progress(step, BURST)
      if (kinds.includes('log')) log('info', step)
      await null
    }
    return 'done'
  },
})

/** Sends a value that cannot be encoded after a burst, when progress is delayed. */
const unencodable = defineTool({
  name: 'unencodable',
  handler(_, { progress }) {
    progress(1, undefined, 'x'.repeat(300 * 1_024))
    progress(2, undefined, 10n as unknown as string)
    return 'done'
  },
})

let url: string
before(async () => {
  const all = [count, chatter, burst, unencodable]
  ;({ url } = await startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
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

/** Calls `burst` with progress and log messages requested, by protocol version. */
const BURST_CALLS: Record<string, (kinds: readonly string[]) => Promise<readonly RpcMessage[]>> = {
  '2026-07-28': async kinds =>
    (await called('burst', { kinds }, { meta: { progressToken: 1, [META.logLevel]: 'info' } })).messages,
}
for (const revision of ['2025-06-18', '2025-11-25']) {
  BURST_CALLS[revision] = async kinds => {
    const client = await openSession(url, { revision })
    const params = { name: 'burst', arguments: { kinds }, _meta: { progressToken: 1 } }
    return (await client.request('tools/call', params)).messages
  }
}

it('Progress that cannot be encoded is an error of the handler, also after a burst', async () => {
  const { messages } = await called('unencodable', {}, { meta: { progressToken: 1 } })
  expect(messages.at(-1).result.isError).to.equal(true)
})

for (const [revision, callBurst] of Object.entries(BURST_CALLS)) {
  describe(`A burst of notifications in ${revision}`, () => {
    it('of progress sends the first values, then the latest, and the last value before the result', async () => {
      const messages = await callBurst(['progress'])
      expect(messages.at(-1).result.content[0].text).to.equal('done')
      const sent = progressOf(messages)
      expect(sent.slice(0, 500)).to.deep.equal(Array.from({ length: 500 }, (_, index) => index + 1))
      expect(sent.at(-1)).to.equal(BURST)
      expect(sent.length).to.be.below(BURST / 2)
      expect(messages).to.have.length(sent.length + 1)
    })

    it('of log messages drops the messages above the limit, and the last one reports their number', async () => {
      const messages = await callBurst(['log'])
      expect(messages.at(-1).result.content[0].text).to.equal('done')
      const sent = messages.slice(0, -2).map(({ params }) => params.data)
      expect(sent.length).to.be.within(1_000, BURST / 2)
      expect(sent).to.deep.equal(sent.map((_, index) => index + 1))
      const { level, data } = messages.at(-2).params
      expect([level, Number(/\d+/.exec(data)?.[0])]).to.deep.equal(['info', BURST - sent.length])
    })

    it('of both keeps their order', async () => {
      const messages = await callBurst(['progress', 'log'])
      expect(messages.at(-1).result.content[0].text).to.equal('done')
      const logged = messages.filter(({ params }) => Number.isInteger(params?.data))
      expect(logged.length).to.be.above(500)
      for (const message of logged) {
        expect(messages[messages.indexOf(message) - 1].params.progress).to.equal(message.params.data)
      }
      expect(progressOf(messages).at(-1)).to.equal(BURST)
    })
  })
}
