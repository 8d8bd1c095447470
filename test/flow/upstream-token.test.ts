// Tests `ctx.upstreamToken`: upstream tokens of the route's provider, and errors when the upstream login has ended.
import { expect } from 'chai'
import { loginExpired } from '../../core/auth.ts'
import { definePrompt, defineResource, defineTool, HostError, ToolError } from '../../core/index.ts'
import type { InternalHost, Services } from '../../core/internal.ts'
import {
  NO_UPSTREAM,
  type UpstreamCaller,
  type UpstreamTokenRequest,
  upstreamTokenOf,
} from '../../plugins/auth-bridge/upstream-context.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { ownServer } from '../fixtures/own-server.ts'
import { createGate } from '../support/gate.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { legacy, modern, modernRequest, post } from '../support/rpc.ts'
import { nextMessage, openSession, postOpen, readWhole } from '../support/session-client.ts'
import { openSseSession } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const TOKEN = 'the-token-of-the-provider'
const WHY = 'the login at the identity provider has ended'
const ANN = { 'X-User': 'ann' }

const puppet = createPuppet()
/** What the tool has to do once it has its token, for some. */
const work = createGate()
const asked: Array<{ caller: UpstreamCaller; request: UpstreamTokenRequest }> = []
/** What the member does next; `ended` where it is nothing. */
const held = new Map<string, ReturnType<typeof createGate<'token' | 'ended'>>>()

const called = (args: object = {}) => ({ name: 'call_api', arguments: args })

const callApi = defineTool({
  name: 'call_api',
  input: {
    type: 'object',
    properties: { scope: { type: 'string' }, loud: { type: 'boolean' }, forgive: { type: 'boolean' } },
  },
  async handler({ scope, loud, forgive }, { upstreamToken, progress }) {
    if (loud) progress(1)
    if (forgive) return upstreamToken({ scope: 'ended' }).catch(() => 'without')
    const token = await upstreamToken(scope === undefined ? undefined : { scope })
    if (scope === 'then-work') await work.opened
    return `a token of ${token.length} characters`
  },
})

const refuseByHand = defineTool({
  name: 'by_hand',
  handler() {
    throw new HostError('unauthorized', { detail: 'the other API says so' })
  },
})
const file = defineResource({
  name: 'file',
  uri: 'acme://file',
  handler: (_, { upstreamToken }) => upstreamToken({ scope: 'ended' }),
})
const draft = definePrompt({ name: 'draft', handler: (_, { upstreamToken }) => upstreamToken({ scope: 'ended' }) })

/** A provider: the scope says what comes of it. */
function server() {
  let services: Services | undefined
  async function tokenFor(caller: UpstreamCaller, request: UpstreamTokenRequest) {
    asked.push({ caller, request })
    const outcome = (await held.get(request.scope ?? '')?.opened) ?? request.scope
    if (outcome === 'refused') throw new ToolError('The provider gives no such token: ask for another scope.')
    if (outcome === 'away') throw new HostError('unavailable', { detail: 'the provider does not answer' })
    if (outcome === 'ended' && services) throw loginExpired(services, caller, WHY)
    return TOKEN
  }
  const setup = (host: InternalHost) => {
    host.onReady(() => {
      const given = host.services
      services = given
    })
    host.context('upstreamToken', upstreamTokenOf(tokenFor))
  }
  return ownServer('/auth', setup, NO_UPSTREAM)
}

async function start() {
  const definitions = [callApi, refuseByHand, file, draft, puppet.tool]
  return startHost({
    toolsets: { all: definitions },
    routes: {
      '/': { toolsets: 'all' },
      '/plain': { toolsets: 'all', stateless: true, plugins: { 'transport-sse': false } },
      '/t/:tenant': { toolsets: 'all' },
      '/none': { toolsets: 'all', plugins: { own: false, 'resource-metadata': false } },
    },
    plugins: {
      'transport-streamable': {},
      'transport-sse': {},
      'resource-metadata': {},
      own: server().plugin,
      who: identifyByHeader(),
    },
  })
}

let url: string
before(async () => {
  ;({ url } = await start())
})
after(stopHosts)

const textOf = ({ message }: { message: { result: { content: Array<{ text: string }> } } }) =>
  message.result.content[0]?.text
const challengeAt = (path: string) =>
  `Bearer error="invalid_token", error_description="${WHY}", ` +
  `resource_metadata="${url}/.well-known/oauth-protected-resource${path}"`
const ENDED = { code: -32600, message: `Authentication required: ${WHY}` }

describe('ctx.upstreamToken', () => {
  it('passes user, URL and scope to the provider', async () => {
    asked.length = 0
    const answer = await modern(`${url}/t/acme`, 'tools/call', called({ scope: 'Files.Read' }), { headers: ANN })
    expect(textOf(answer)).to.equal(`a token of ${TOKEN.length} characters`)
    const [one] = asked
    expect(one?.caller.user?.subject).to.equal('ann')
    expect([one?.caller.route.path, one?.caller.params]).to.deep.equal(['/t/:tenant', { tenant: 'acme' }])
    expect(one?.request).to.deep.equal({ scope: 'Files.Read' })
    await modern(url, 'tools/call', called())
    expect(asked[1]?.request).to.deep.equal({})
    expect(asked[1]?.caller.user).to.equal(undefined)
  })

  it('works in sessions, on stateless routes and over HTTP+SSE', async () => {
    const expected = `a token of ${TOKEN.length} characters`
    const session = await openSession(url)
    expect(textOf(await session.request('tools/call', called()))).to.equal(expected)
    expect(textOf(await legacy(`${url}/plain`, 'tools/call', called()))).to.equal(expected)
    const sse = await openSseSession(url)
    expect(textOf({ message: await sse.request('tools/call', called()) })).to.equal(expected)
    sse.stream.drop()
  })

  it('rejects with a readable message when no provider is configured', async () => {
    const answer = await modern(`${url}/none`, 'tools/call', called())
    expect(answer.message.result.isError).to.equal(true)
    expect(textOf(answer)).to.match(/identity provider/)
  })

  it('rejects with the error of the provider, as tool result or protocol error', async () => {
    const refused = await modern(url, 'tools/call', called({ scope: 'refused' }))
    expect([refused.message.result.isError, textOf(refused)]).to.deep.equal([
      true,
      'The provider gives no such token: ask for another scope.',
    ])
    const away = await modern(url, 'tools/call', called({ scope: 'away' }))
    expect(away.status).to.equal(200)
    expect(away.message.error.message).to.match(/^Service unavailable: /)
    expect(textOf(await modern(url, 'tools/call', called({ forgive: true })))).to.equal('without')
  })
})

describe('ended upstream login', () => {
  it("returns 401 with the route's challenge for tools, resources and prompts", async () => {
    const calls: Array<[string, object]> = [
      ['tools/call', called({ scope: 'ended' })],
      ['resources/read', { uri: 'acme://file' }],
      ['prompts/get', { name: 'draft' }],
    ]
    for (const path of ['', '/plain', '/t/acme']) {
      for (const [method, params] of calls) {
        const answer = await modern(`${url}${path}`, method, params as Record<string, unknown>, { id: 'one' })
        expect([answer.status, answer.headers.get('www-authenticate')]).to.deep.equal([401, challengeAt(path)])
        expect(answer.message).to.deep.equal({ jsonrpc: '2.0', id: 'one', error: ENDED })
      }
    }
  })

  it('returns 401 for clients of every older protocol version without a session', async () => {
    for (const revision of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const answer = await legacy(`${url}/plain`, 'tools/call', called({ scope: 'ended' }), { revision })
      expect([answer.status, answer.headers.get('www-authenticate')]).to.deep.equal([401, challengeAt('/plain')])
    }
  })

  it('returns 401 in a session and keeps the session', async () => {
    const session = await openSession(url)
    const answer = await session.request('tools/call', called({ scope: 'ended' }))
    expect([answer.status, answer.headers['www-authenticate']]).to.deep.equal([401, challengeAt('')])
    expect(answer.message.error).to.deep.equal(ENDED)
    expect(textOf(await session.request('tools/call', called()))).to.equal(`a token of ${TOKEN.length} characters`)
  })

  it('fails only the call when its response is already a stream or part of a batch', async () => {
    const meta = { progressToken: 'p' }
    const streamed = await modern(url, 'tools/call', called({ scope: 'ended', loud: true }), { meta })
    expect([streamed.status, streamed.headers.get('www-authenticate')]).to.deep.equal([200, null])
    expect(streamed.messages[0].method).to.equal('notifications/progress')
    expect(streamed.message.error).to.deep.equal(ENDED)

    const batch = ['ended', 'a'].map(scope => ({ id: scope, method: 'tools/call', params: called({ scope }) }))
    const body = JSON.stringify(batch.map(one => ({ jsonrpc: '2.0', ...one })))
    const several = await post(`${url}/plain`, body, { 'MCP-Protocol-Version': '2025-03-26' })
    expect(several.status).to.equal(200)
    const [both] = several.messages
    expect(both.find(({ id }: { id: string }) => id === 'ended').error).to.deep.equal(ENDED)

    const sse = await openSseSession(url)
    expect((await sse.request('tools/call', called({ scope: 'ended' }))).error).to.deep.equal(ENDED)
    sse.stream.drop()
  })

  it('does not apply to a handler that throws `unauthorized` itself', async () => {
    const answer = await modern(url, 'tools/call', { name: 'by_hand' })
    expect([answer.status, answer.message.error.code]).to.deep.equal([200, -32600])
    expect(answer.headers.get('www-authenticate')).to.equal(null)
  })
})

describe('slow upstream token provider', () => {
  /** A call that began after another and is answered by a stream: the other would have become one by then. */
  async function windowIsOver(name: string) {
    const request = modernRequest('tools/call', { name: 'puppet', arguments: { name } })
    const stream = await postOpen(url, request.body, request.headers)
    expect(stream.headers['content-type']).to.contain('text/event-stream')
    const { finish } = await puppet.call(name)
    finish('done')
    await stream.rest()
  }

  const waiting = (scope: string) => {
    const gate = createGate<'token' | 'ended'>()
    held.set(scope, gate)
    return gate
  }

  it('delays the response headers so that a 401 stays possible', async () => {
    const session = await openSession(url)
    const ways = [
      (scope: string) => {
        const request = modernRequest('tools/call', called({ scope }))
        return postOpen(url, request.body, request.headers)
      },
      (scope: string) => session.open('tools/call', called({ scope })),
    ]
    for (const [index, open] of ways.entries()) {
      const gate = waiting(`slow-${index}`)
      const opened = open(`slow-${index}`)
      await windowIsOver(`window-${index}`)
      gate.open('ended')
      const answer = await readWhole(opened)
      expect([answer.status, answer.headers['www-authenticate']]).to.deep.equal([401, challengeAt('')])
    }
  })

  it('lets a call open its stream once the token is available', async () => {
    const gate = waiting('then-work')
    const request = modernRequest('tools/call', called({ scope: 'then-work' }))
    const opened = postOpen(url, request.body, request.headers)
    await windowIsOver('window-2')
    gate.open('token')
    // Its handler still waits.
    const stream = await opened
    expect([stream.status, stream.headers['content-type']]).to.deep.equal([200, 'text/event-stream'])
    work.open()
    expect(textOf({ message: await nextMessage(stream) })).to.equal(`a token of ${TOKEN.length} characters`)
  })
})
