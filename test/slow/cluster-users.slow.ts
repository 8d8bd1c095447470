// Tests isolation of two users at three nodes behind nginx when one has the session id and event ids of the other.
import { expect } from 'chai'
import { type Balanced, needsDeployment, startBalanced, stopBalanced } from '../cluster/support/balanced-deployment.ts'
import { AUDIENCE } from '../cluster/support/journey.config.ts'
import { createRemotePuppet } from '../cluster/support/remote-puppet.ts'
import type { Puppet } from '../support/puppet-tool.ts'
import {
  nextMessage,
  openSession,
  postMessage,
  type SessionClient,
  sendRequest,
  type WholeAnswer,
} from '../support/session-client.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'
import { startIssuer, stopIssuers, type TestIssuer } from '../support/test-issuer.ts'

let balanced: Balanced
let puppet: Pick<Puppet, 'call'>
let issuer: TestIssuer
before(async function () {
  needsDeployment(this)
  issuer = await startIssuer()
  balanced = await startBalanced({ config: 'test/cluster/support/journey.config.ts', env: { ISSUER: issuer.url } })
  puppet = createRemotePuppet(balanced.nodes)
})
after(async () => {
  await stopBalanced()
  await stopIssuers()
})

const headersOf = (sub: string) => ({ Authorization: `Bearer ${issuer.token(AUDIENCE, { sub })}` })

/** What the owner has under way: a call that asks her, a call that reports, and a stream of the session. */
interface UnderWay {
  readonly ann: SessionClient
  readonly call: StreamExchange
  readonly asking: StreamExchange
  readonly standalone: StreamExchange
  /** Ids of events on each of the three. */
  readonly eventIds: readonly string[]
  readonly question: { readonly id: string }
}

async function idOfNext(stream: StreamExchange): Promise<string> {
  for (let event = await stream.next(); event; event = await stream.next()) if (event.id !== undefined) return event.id
  throw new Error('a stream ended before an id came')
}

async function begin(): Promise<UnderWay> {
  const capabilities = { elicitation: { form: {}, url: {} } }
  const ann = await openSession(`${balanced.url}/guarded`, { headers: headersOf('ann'), capabilities })
  const standalone = await ann.get()
  const call = await ann.call('puppet', { name: 'hers' }, { id: 'her call' })
  const { ctx } = await puppet.call('hers')
  ctx.progress(1)
  const asking = await ann.call('ask_the_user', {}, { id: 'her question' })
  const eventIds = [await idOfNext(standalone), await idOfNext(call), await idOfNext(asking)]
  const question = await nextMessage(asking)
  return { ann, call, asking, standalone, eventIds, question }
}

describe('user isolation behind nginx with leaked session and event ids', () => {
  it('rejects reading, responding, cancelling and ending at every node', async () => {
    const { ann, call, asking, standalone, eventIds, question } = await begin()
    const bob = await openSession(`${balanced.url}/guarded`, { headers: headersOf('bob') })
    const places = [...balanced.nodes.map(({ url }) => url), balanced.url].map(url => `${url}/guarded`)
    const attacks: Array<readonly [string, (url: string) => Promise<WholeAnswer>]> = []
    const version = { 'MCP-Protocol-Version': '2025-11-25' }
    const hers = { ...headersOf('bob'), ...version, 'Mcp-Session-Id': ann.id }
    const his = { ...headersOf('bob'), ...version, 'Mcp-Session-Id': bob.id }
    const nobodys = { ...version, 'Mcp-Session-Id': ann.id }
    const stream = { Accept: 'text/event-stream' }
    const answer = { id: question.id, result: { action: 'accept', content: { name: 'Mallory' } } }
    const cancel = { method: 'notifications/cancelled', params: { requestId: 'her call' } }
    for (const [who, headers] of [
      ['her session, his token', hers],
      ['her session, no token', nobodys],
    ] as const) {
      attacks.push(
        [`${who}: a call`, url => postMessage(url, { id: 1, method: 'tools/list', params: {} }, headers)],
        [`${who}: its stream`, url => sendRequest(url, 'GET', { ...headers, ...stream })],
        [`${who}: an answer`, url => postMessage(url, answer, headers)],
        [`${who}: a cancellation`, url => postMessage(url, cancel, headers)],
        [`${who}: its end`, url => sendRequest(url, 'DELETE', headers)],
      )
    }
    for (const [at, id] of eventIds.entries()) {
      const replay = { ...stream, 'Last-Event-ID': `${id.split('.')[0]}.0` }
      attacks.push(
        [`her session and event ${at}`, url => sendRequest(url, 'GET', { ...hers, ...replay })],
        [`his session, her event ${at}`, url => sendRequest(url, 'GET', { ...his, ...replay })],
      )
    }

    const crossed: string[] = []
    for (const url of places) {
      for (const [attack, attempt] of attacks) {
        const { status, messages } = await attempt(url)
        if (status < 400 || messages.some(message => message.result !== undefined)) crossed.push(`${attack}: ${status}`)
      }
      // In a session of his own he may answer and cancel what he likes: hers is not meant.
      for (const message of [answer, cancel]) expect((await postMessage(url, message, his)).status).to.equal(202)
    }
    expect(crossed).to.deep.equal([])

    // What is hers went on.
    const { ctx, finish } = await puppet.call('hers')
    ctx.progress(2)
    finish('hers alone')
    expect(ctx.signal.aborted).to.equal(false)
    const rest = await call.rest()
    expect(rest.at(-1)?.message.result.content[0].text).to.equal('hers alone')
    expect(rest.map(({ message }) => message?.params?.progress).filter(step => step !== undefined)).to.include(2)
    const mine = { id: question.id, result: { action: 'accept', content: { name: 'Ann' } } }
    expect((await ann.send(mine)).status).to.equal(202)
    const visit = await nextMessage(asking)
    expect((await ann.send({ id: visit.id, result: { action: 'accept' } })).status).to.equal(202)
    const asked = await nextMessage(asking)
    expect(asked.result.structuredContent).to.deep.equal({ name: 'Ann', consent: 'accept' })
    await ann.request('resources/subscribe', { uri: 'journey://page' })
    await ann.request('tools/call', { name: 'edit_page', arguments: {} })
    expect((await nextMessage(standalone)).params).to.deep.equal({ uri: 'journey://page' })
    standalone.drop()
    expect((await ann.end()).status).to.be.within(200, 204)
    for (const url of places)
      expect(
        (await sendRequest(url, 'GET', { ...headersOf('ann'), ...version, 'Mcp-Session-Id': ann.id, ...stream }))
          .status,
      ).to.equal(404)
  })
})
