// Tests calls of upstream servers of both eras by clients of both eras: results, requests, progress, log and cancellation.
import { expect } from 'chai'
import { ALL_CAPABILITIES, callTool, questionsIn } from '../../fixtures/asking-client.ts'
import {
  type LegacyHttp,
  type ModernHttp,
  serveLegacy,
  serveModernSdk,
  stopServers,
} from '../../remote/support/servers.ts'
import { eventually } from '../../support/eventually.ts'
import { modern, modernRequest } from '../../support/rpc.ts'
import { nextMessage, openSession, postOpen, readRest } from '../../support/session-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'

let legacyServer: LegacyHttp
let modernServer: ModernHttp
let host: StartedHost
before(async () => {
  legacyServer = await serveLegacy()
  modernServer = await serveModernSdk()
  host = await startHost({
    routes: { '/:name': { toolsets: ':name' } },
    plugins: {
      'transport-streamable': {},
      upstream: {
        servers: {
          old: { url: legacyServer.url, prefix: '' },
          sse: { url: legacyServer.sseUrl, prefix: '' },
          new: { url: modernServer.url, prefix: '' },
        },
      },
    },
  })
})
after(async () => {
  await stopHosts()
  await stopServers()
})

const accept = { action: 'accept', content: { name: 'Ada' } }

for (const name of ['old', 'sse', 'new']) {
  describe(`Upstream server "${name}" behind a 2026-07-28 client`, () => {
    const at = () => `${host.url}/${name}`

    it('lists and runs its tools', async () => {
      const { tools } = (await modern(at(), 'tools/list')).message.result
      const names = tools.map((tool: { name: string }) => tool.name)
      expect(names).to.include.members(['add', 'ask', 'steps', 'wait'])
      const { result } = (await callTool(at(), 'add', {}, { a: 1, b: 2 })).message
      expect(result.content).to.deep.equal([{ type: 'text', text: '3' }])
    })

    it('passes requests to the client, and its responses to the server', async () => {
      const { message } = await callTool(at(), 'ask')
      const [[key = '', question] = []] = Object.entries(questionsIn(message))
      expect(question).to.equal('Your name?')
      const { result } = (
        await callTool(at(), 'ask', { state: message.result.requestState, answers: { [key]: accept } })
      ).message
      expect(result.content[0].text).to.match(/Ada/)
    })

    it('reports progress', async () => {
      const { body, headers } = modernRequest(
        'tools/call',
        { name: 'steps', arguments: {} },
        { meta: { progressToken: 'p' } },
      )
      const stream = await postOpen(at(), body, headers)
      const messages = await readRest(stream)
      expect(messages.filter(({ method }) => method === 'notifications/progress').at(-1)?.params).to.include({
        progressToken: 'p',
      })
      expect(messages.at(-1)?.result.content[0].text).to.equal('done')
    })

    it('is cancelled by the end of the request', async () => {
      const { calls } = name === 'new' ? modernServer : legacyServer
      calls.length = 0
      const { body, headers } = modernRequest('tools/call', { name: 'wait', arguments: {} })
      const opening = postOpen(at(), body, headers)
      await eventually('the call runs', () => calls.includes('wait'))
      const stream = await opening
      stream.drop()
      await eventually('the call is cancelled', () => calls.includes('cancelled'))
    })

    it('declines requests that the client does not support', async () => {
      const { message } = await callTool(at(), 'ask', { capabilities: {} })
      if (name === 'new') expect(message.error.code).to.equal(-32_021)
      else expect(message.result.content[0].text).to.equal('decline ')
    })
  })

  describe(`Upstream server "${name}" behind a client with a session`, () => {
    const open = () => openSession(`${host.url}/${name}`, { capabilities: ALL_CAPABILITIES, revision: '2025-11-25' })

    it('runs its tools, and passes requests to the client on the stream of the call', async () => {
      const client = await open()
      const { message } = await client.request('tools/call', { name: 'add', arguments: { a: 2, b: 3 } })
      expect(message.result.content[0].text).to.equal('5')
      const stream = await client.call('ask')
      const question = await nextMessage(stream)
      expect(question.params.message).to.equal('Your name?')
      await client.send({ id: question.id, result: accept })
      const [last] = await readRest(stream)
      expect(last?.result.content[0].text).to.match(/Ada/)
      await client.end()
    })

    it('receives no roots of the client', async () => {
      const client = await open()
      const { message } = await client.request('tools/call', { name: 'roots', arguments: {} })
      expect(message.method).to.equal(undefined)
      expect(message.error !== undefined || message.result.isError).to.equal(true)
      await client.end()
    })

    it('is cancelled by a notification', async () => {
      const { calls } = name === 'new' ? modernServer : legacyServer
      calls.length = 0
      const client = await open()
      const opening = client.open('tools/call', { name: 'wait', arguments: {} }, { id: 77 })
      await eventually('the call runs', () => calls.includes('wait'))
      await client.send({ method: 'notifications/cancelled', params: { requestId: 77 } })
      await eventually('the call is cancelled', () => calls.includes('cancelled'))
      ;(await opening).drop()
      await client.end()
    })
  })
}
