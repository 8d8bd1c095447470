import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { LOG_LEVELS } from '../../../core/transport.ts'
import { createGate } from '../../support/gate.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import type { RpcMessage } from '../../support/rpc.ts'
import { nextMessage, openSession, readRest, readWhole, type SessionClient } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import type { StreamExchange } from '../../support/stream-exchange.ts'

const { tool: puppet, call } = createPuppet()
const talk = defineTool({
  name: 'talk',
  handler(_args, { log }) {
    for (const level of LOG_LEVELS) log(level, { level }, 'talker')
    return 'said'
  },
})
const count = defineTool({
  name: 'count',
  handler(_args, { progress }) {
    for (const step of [1, 2, 2, 1, 3]) progress(step, 3, `step ${step}`)
    return 'counted'
  },
})
const detached = createGate()
const chatter = defineTool({
  name: 'chatter',
  handler(_args, { progress, log }) {
    progress(1)
    void detached.opened.then(() => {
      progress(2)
      log('error', 'too late')
    })
    return 'done'
  },
})
let url: string
before(async () => {
  ;({ url } = await startHost({
    toolsets: { all: [puppet, talk, count, chatter] },
    routes: { '/': { toolsets: 'all' } },
  }))
})
after(stopHosts)

const textOf = async (opened: Promise<StreamExchange>) => (await readWhole(opened)).message.result.content[0].text

const levelsOf = (messages: readonly RpcMessage[]) => messages.flatMap(({ params }) => params?.level ?? [])
const talkTo = async (client: SessionClient) =>
  levelsOf((await client.request('tools/call', { name: 'talk' })).messages)

describe('Logging in a session', () => {
  it('is declared, and sends messages from "info" upwards by default', async () => {
    const client = await openSession(url)
    expect(client.initialized.message.result.capabilities.logging).to.deep.equal({})
    const { messages } = await client.request('tools/call', { name: 'talk' })
    expect(levelsOf(messages)).to.deep.equal(LOG_LEVELS.slice(1))
    const [first] = messages
    expect([first.method, first.params]).to.deep.equal([
      'notifications/message',
      { level: 'info', data: { level: 'info' }, logger: 'talker' },
    ])
  })

  it('logging/setLevel applies to that level and more severe ones, in this session only', async () => {
    const [client, other] = [await openSession(url), await openSession(url)]
    for (const [index, level] of LOG_LEVELS.entries()) {
      expect((await client.request('logging/setLevel', { level })).message.result).to.deep.equal({})
      expect(await talkTo(client), level).to.deep.equal(LOG_LEVELS.slice(index))
    }
    expect(await talkTo(other)).to.deep.equal(LOG_LEVELS.slice(1))
  })

  it('logging/setLevel applies to running calls', async () => {
    const client = await openSession(url)
    const stream = client.call('puppet', { name: 'levels' })
    const { ctx, finish } = await call('levels')
    ctx.log('debug', 'unheard')
    await client.request('logging/setLevel', { level: 'debug' })
    ctx.log('debug', 'heard')
    expect((await nextMessage(await stream)).params).to.deep.equal({ level: 'debug', data: 'heard' })
    finish('')
    await readRest(await stream)
  })

  it('logging/setLevel with an invalid level gets -32602 and keeps the level', async () => {
    const client = await openSession(url)
    for (const level of ['loud', '', undefined, 3, 'INFO']) {
      const { status, message } = await client.request('logging/setLevel', { level })
      expect([status, message.error.code]).to.deep.equal([200, -32602])
    }
    expect(await talkTo(client)).to.deep.equal(LOG_LEVELS.slice(1))
  })
})

describe('Progress in a session', () => {
  it('precedes the response on its stream with the token of the request, and only increases', async () => {
    const client = await openSession(url)
    for (const progressToken of ['a', 0]) {
      const { messages } = await client.request('tools/call', { name: 'count', _meta: { progressToken } })
      const [answer, ...reports] = [...messages].reverse()
      expect(answer.result.content[0].text).to.equal('counted')
      expect(
        reports.reverse().map(({ method, params }) => [method, params.progressToken, params.progress]),
      ).to.deep.equal([1, 2, 3].map(step => ['notifications/progress', progressToken, step]))
    }
  })

  it('is not sent without a progress token', async () => {
    const client = await openSession(url)
    expect((await client.request('tools/call', { name: 'count' })).messages).to.have.length(1)
  })

  it('stops with the response, even if other responses follow on the stream', async () => {
    const client = await openSession(url, { revision: '2025-03-26' })
    const request = (id: number, name: string, args = {}) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name, arguments: args, _meta: { progressToken: id } },
    })
    const sent = client.send([request(1, 'chatter'), request(2, 'puppet', { name: 'slow' })])
    const { finish } = await call('slow')
    // The first of the two is answered in this turn of the event loop.
    await nextTurn()
    detached.open()
    await detached.opened
    finish('late')
    const { messages } = await sent
    expect(messages.map(({ id, method }) => id ?? method)).to.deep.equal(['notifications/progress', 1, 2])
  })
})

describe('notifications/cancelled', () => {
  it('aborts the call and its signal with the reason, without a response, and ends the stream', async () => {
    const client = await openSession(url)
    for (const id of ['x', 0]) {
      const stream = client.call('puppet', { name: `cancelled ${id}` }, { id })
      const { ctx } = await call(`cancelled ${id}`)
      const told = await client.send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'enough' } })
      expect([told.status, told.text]).to.deep.equal([202, ''])
      expect(ctx.signal.aborted).to.equal(true)
      expect(ctx.signal.reason.message).to.equal('enough')
      expect(await readRest(await stream)).to.deep.equal([])
      expect(await (await stream).whole).to.equal(true)
    }
  })

  it('is ignored for unknown, finished or malformed ids, and other sessions', async () => {
    const [client, other] = [await openSession(url), await openSession(url)]
    const stream = client.call('puppet', { name: 'kept' }, { id: 'kept' })
    const { ctx, finish } = await call('kept')
    await other.send({ method: 'notifications/cancelled', params: { requestId: 'kept' } })
    for (const params of [{ requestId: 'unknown' }, {}, undefined, { requestId: null }, { requestId: ['kept'] }]) {
      expect((await client.send({ method: 'notifications/cancelled', params })).status).to.equal(202)
    }
    expect(ctx.signal.aborted).to.equal(false)
    finish('kept')
    expect(await textOf(stream)).to.equal('kept')
  })
})
