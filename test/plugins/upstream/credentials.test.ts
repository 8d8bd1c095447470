// Tests access tokens of callers at upstream servers: from the identity provider, and exchanged ones.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { loginExpired } from '../../../core/auth.ts'
import { defineTool, HostError } from '../../../core/index.ts'
import type { InternalHost, Services } from '../../../core/internal.ts'
import {
  NO_UPSTREAM,
  type UpstreamCaller,
  type UpstreamTokenRequest,
  upstreamTokenOf,
} from '../../../plugins/auth-bridge/upstream-context.ts'
import type { UpstreamOptions } from '../../../plugins/upstream/index.ts'
import { runCli, stopAll } from '../../cli/in-process.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { identifyByHeader } from '../../fixtures/identify-by-header.ts'
import { ownServer } from '../../fixtures/own-server.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { serveModern, stopServers } from '../../remote/support/servers.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

after(stopAll)
afterEach(stopHosts)
after(removeFolders)
after(stopServers)

type Server = UpstreamOptions['servers'][string]

/** Returns the token that the server received with the call. */
const whoAmI = defineTool({ name: 'whoami', handler: (_, { user }) => user?.subject ?? 'nobody' })

/** A server that accepts the tokens of `valid`. */
async function startOrigin({ isOpen = true } = {}) {
  const valid = new Set<string>()
  const seen: string[] = []
  const tokens = plugin(
    host =>
      host.authenticate(async (ctx, next) => {
        const { authorization } = ctx.req.headers
        if (authorization === undefined && !isOpen) throw new HostError('unauthorized', { detail: 'no token' })
        if (authorization !== undefined) {
          const token = authorization.replace('Bearer ', '')
          seen.push(token)
          if (!valid.has(token)) throw new HostError('unauthorized', { detail: 'the token is invalid' })
          ctx.state.user = { subject: token, scopes: [], roles: [], claims: {} }
        }
        await next()
      }),
    { provides: ['user'] },
  )
  const { url } = await startHost({
    toolsets: { all: [whoAmI] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, tokens },
  })
  return { url, valid, seen }
}

/** The identity provider of the gateway: a new token for each request that rejects the last one. */
function createProvider() {
  const requests: UpstreamTokenRequest[] = []
  const issued = new Map<string, number>()
  let services: Services | undefined
  async function tokenFor(caller: UpstreamCaller, request: UpstreamTokenRequest) {
    requests.push(request)
    const name = caller.user?.subject ?? ''
    if (name === 'gone' && services) throw loginExpired(services, caller, 'the login has ended')
    const count = (issued.get(name) ?? 1) + (request.rejected === undefined ? 0 : 1)
    issued.set(name, count)
    return `${name}-${count}`
  }
  const setup = (host: InternalHost) => {
    host.onReady(() => {
      services = host.services
    })
    host.context('upstreamToken', upstreamTokenOf(tokenFor))
  }
  return { requests, plugin: ownServer('/auth', setup, NO_UPSTREAM).plugin }
}

async function startGateway(server: Server, directory?: string) {
  const provider = createProvider()
  const gauges = new Map<string, () => unknown>()
  const ignore = () => () => undefined
  const reader: Parameters<InternalHost['metrics']['readBy']>[0] = {
    gauge: ({ name }, read) => void gauges.set(name, read),
    counter: ignore,
    histogram: ignore,
  }
  const { url, log } = await startHost(
    {
      toolsets: {},
      routes: { '/': { toolsets: ['far'] } },
      plugins: {
        'transport-streamable': {},
        'resource-metadata': {},
        own: provider.plugin,
        who: identifyByHeader(),
        reader: plugin(host => host.metrics.readBy(reader)),
        upstream: { servers: { far: server } },
      },
    },
    directory,
  )
  const call = (user: string, headers: object = {}) =>
    modern(url, 'tools/call', { name: 'far_whoami' }, { headers: { 'X-User': user, ...headers } })
  const textAt = async (user: string) => (await call(user)).message.result?.content?.[0]?.text
  const gauge = (name: string) => gauges.get(name)?.()
  return { url, log, call, textAt, gauge, requests: provider.requests }
}

for (const revision of ['2026-07-28', '2025-11-25'] as const) {
  describe(`Tokens of callers at a server (${revision})`, () => {
    it('are those of the identity provider, and separate for each caller', async () => {
      const origin = await startOrigin()
      for (const token of ['ann-1', 'ben-1']) origin.valid.add(token)
      const { call, textAt, requests } = await startGateway({
        url: origin.url,
        revision,
        auth: { kind: 'bridge', scope: ['a', 'b'] },
      })
      const texts = await Promise.all(['ann', 'ben', 'ann', 'ben'].map(textAt))
      expect(texts).to.deep.equal(['ann-1', 'ben-1', 'ann-1', 'ben-1'])
      expect(requests[0]).to.deep.equal({ scope: 'a b' })
      await call('ann', { Authorization: 'Bearer token-for-the-gateway' })
      expect(new Set(origin.seen)).to.deep.equal(new Set(['ann-1', 'ben-1']))
    })

    it('are renewed once after a 401 response, then the client has to log in again', async () => {
      const origin = await startOrigin()
      origin.valid.add('ann-2')
      const { call, textAt, requests } = await startGateway({ url: origin.url, revision, auth: { kind: 'bridge' } })
      expect(await textAt('ann')).to.equal('ann-2')
      expect(requests).to.deep.equal([{}, { rejected: 'ann-1' }])
      expect(await textAt('ann'), 'the next call uses the new token').to.equal('ann-2')
      const refused = await call('ben')
      expect(origin.seen.filter(token => token.startsWith('ben'))).to.include.members(['ben-1', 'ben-2'])
      expect(origin.seen).not.to.include('ben-3')
      expect(refused.message.error.message).to.match(/^Authentication required: the server "far" refused the token/)
    })

    it('replace a fixed token, which the host uses for lists', async () => {
      const origin = await startOrigin({ isOpen: false })
      for (const token of ['of-the-host', 'ann-1']) origin.valid.add(token)
      const headers = { Authorization: 'Bearer of-the-host' }
      const { textAt } = await startGateway({ url: origin.url, revision, headers, auth: { kind: 'bridge' } })
      expect(await textAt('ann')).to.equal('ann-1')
    })

    it('are not sent if the login has ended', async () => {
      const origin = await startOrigin()
      const { call } = await startGateway({ url: origin.url, revision, auth: { kind: 'bridge' } })
      expect((await call('gone')).message.error.message).to.equal('Authentication required: the login has ended')
      expect(origin.seen).to.deep.equal([])
    })
  })
}

describe('Exchanged tokens of callers at a server', () => {
  it('are requested once per caller, and again after a 401 response', async () => {
    const forms: Array<Record<string, string>> = []
    const endpoint = createServer(async (req, res) => {
      let body = ''
      for await (const piece of req) body += String(piece)
      const form = Object.fromEntries(new URLSearchParams(body))
      forms.push(form)
      const token = `for-${form['subject_token']}-${forms.length}`
      res
        .setHeader('Content-Type', 'application/json')
        .end(JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 600 }))
    })
    await new Promise<void>(resolve => endpoint.listen(0, '127.0.0.1', resolve))
    try {
      const origin = await startOrigin()
      origin.valid.add('for-ann-1-2')
      const { textAt } = await startGateway({
        url: origin.url,
        auth: {
          kind: 'exchange',
          tokenEndpoint: `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/token`,
          clientId: 'gateway',
          clientSecret: 'a secret of the gateway',
          audience: 'far',
        },
      })
      expect(await textAt('ann')).to.equal('for-ann-1-2')
      expect(await textAt('ann')).to.equal('for-ann-1-2')
      expect(forms).to.have.lengthOf(2)
      expect(forms[0]).to.include({ audience: 'far', subject_token: 'ann-1' })
    } finally {
      endpoint.close()
    }
  })
})

for (const revision of ['2026-07-28', '2025-11-25'] as const) {
  describe(`A server whose lists depend on the user (${revision})`, () => {
    async function startBoth(more: Partial<Server>) {
      const listedTo = new Set<string>()
      const calledBy: string[] = []
      const url = await serveModern(
        ({ id, method, params, request, json }) => {
          const token = request.headers.authorization?.replace('Bearer ', '') ?? 'nobody'
          const names = ['operator', 'ann-1'].includes(token) ? ['open', 'admin'] : ['open']
          const respond = (result: object) =>
            json({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } })
          if (method === 'initialize')
            return respond({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'a' } })
          if (method !== 'tools/call') {
            if (method === 'tools/list') listedTo.add(token)
            return respond({ tools: names.map(name => ({ name, inputSchema: { type: 'object' } })) })
          }
          const name = String(params['name'])
          if (!names.includes(name))
            return json({ jsonrpc: '2.0', id, error: { code: -32_602, message: `Unknown tool: ${name}` } })
          calledBy.push(`${name} ${token}`)
          return respond({ content: [{ type: 'text', text: `for ${token}` }] })
        },
        { tools: {} },
      )
      const gateway = await startGateway({ url, revision, prefix: '', auth: { kind: 'bridge' }, ...more })
      const as = async (user: string, method: string, params: Record<string, unknown> = {}) =>
        (await modern(gateway.url, method, params, { headers: { 'X-User': user } })).message
      const namesFor = async (user: string) =>
        (await as(user, 'tools/list')).result.tools.map(({ name }: { name: string }) => name)
      return { ...gateway, as, namesFor, listedTo, calledBy }
    }

    it('is read with the token of the host only: users see the same lists, and call with their own tokens', async () => {
      const headers = { Authorization: 'Bearer operator' }
      const { as, namesFor, listedTo, calledBy, log } = await startBoth({ headers })
      for (const user of ['ann', 'ben']) expect(await namesFor(user)).to.have.members(['open', 'admin'])
      expect((await as('ann', 'tools/call', { name: 'admin' })).result.content[0].text).to.equal('for ann-1')
      for (const _ of [1, 2]) {
        const { result } = await as('ben', 'tools/call', { name: 'admin' })
        expect(result.isError).to.equal(true)
        expect(result.content[0].text).to.contain('Unknown tool')
      }
      expect(calledBy).to.deep.equal(['admin ann-1'])
      expect([...listedTo]).to.deep.equal(['operator'])
      const lines = log.filter(({ code }) => code === 'MH2958')
      expect(lines).to.have.lengthOf(1)
      expect(lines[0]).to.include({ upstream: 'far', upstreamTool: 'admin' })
    })

    it('serves no tool that it lists only to a user', async () => {
      const { as, namesFor, listedTo, calledBy } = await startBoth({})
      for (const user of ['ann', 'ben']) expect(await namesFor(user)).to.deep.equal(['open'])
      expect((await as('ann', 'tools/call', { name: 'admin' })).error.code).to.equal(-32_602)
      expect((await as('ann', 'tools/call', { name: 'open' })).result.content[0].text).to.equal('for ann-1')
      expect(calledBy).to.deep.equal(['open ann-1'])
      expect([...listedTo]).to.deep.equal(['nobody'])
    })
  })
}

describe('A server that lists tools only with a token', () => {
  it('serves the accepted tools, with the token of each caller', async () => {
    const origin = await startOrigin({ isOpen: false })
    for (const token of ['operator', 'ann-1']) origin.valid.add(token)
    const server = { url: origin.url, auth: { kind: 'bridge' } } as const
    const folder = await makeFolder({
      'mcp.config.json': JSON.stringify({
        server: { name: 'gateway', version: '1.0.0' },
        secrets: ['a secret for tests, long enough to be one'],
        routes: { '/': { toolsets: ['far'] } },
        plugins: { 'transport-streamable': {}, upstream: { servers: { far: server } } },
      }),
    })
    const refused = await runCli(['accept', 'far'], folder)
    expect(refused.stderr).to.match(/cannot read the lists of the server "far".*--token/)
    expect((await runCli(['accept', 'far', '--token', 'operator'], folder)).code).to.equal(0)
    const lineOf = ({ log }: Awaited<ReturnType<typeof startGateway>>) => log.find(({ code }) => code === 'MH2942')
    const unknown = await startGateway(server)
    expect(lineOf(unknown)).to.include({ level: 'warn', state: 'needs login' })
    expect(lineOf(unknown)?.fix).to.match(/mcp-host accept far --token/)
    const accepted = await startGateway(server, folder)
    const { textAt, gauge } = accepted
    expect(lineOf(accepted)).to.include({ level: 'info', state: 'needs login' }).and.not.have.property('fix')
    expect(gauge('mcp_host_upstream_up')).to.deep.equal([[1, { upstream: 'far' }]])
    expect(await textAt('ann')).to.equal('ann-1')
  })

  it('cannot share a session', async () => {
    const server = { url: 'http://127.0.0.1:9/', auth: { kind: 'bridge' }, sessions: 'shared' } as const
    const failure = await startGateway(server).then(() => '', String)
    expect(failure).to.match(/sessions.*requires separate sessions/)
  })
})
