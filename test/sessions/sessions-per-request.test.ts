// Tests the configureSession hook for single requests.
import { expect } from 'chai'
import { type Config, defineTool, HostError } from '../../core/index.ts'
import type { SessionRequest } from '../../core/mcp/routes/configure-session.ts'
import { META } from '../../core/transport.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { abandon } from '../fixtures/one-call.ts'
import { createGate } from '../support/gate.ts'
import { legacy, modern, type RpcAnswer, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const trace: string[] = []
beforeEach(() => {
  trace.length = 0
})

const tool = (name: string) =>
  defineTool({
    name,
    handler() {
      trace.push(name)
      return name
    },
  })
const toolsets = { basic: [tool('a')], gold: [tool('g')] }
const extra = tool('x')

const start = (more: Pick<Config, 'configureSession' | 'runSession'> & Partial<Config>) =>
  startHost({
    toolsets,
    routes: { '/': { toolsets: 'basic' }, '/t/:set?': { toolsets: ':set', default: ['basic', 'gold'] } },
    plugins: { 'transport-streamable': {}, who: identifyByHeader() },
    ...more,
  })

const listOf = ({ message }: RpcAnswer) => message.result.tools.map(({ name }: RpcMessage) => name)
const list = async (url: string, headers: Record<string, string> = {}) =>
  listOf(await modern(url, 'tools/list', {}, { headers }))

describe('configureSession for one request', () => {
  it('receives user claims, route parameters, headers, address and toolsets', async () => {
    const seen: Array<[SessionRequest, unknown]> = []
    const { url } = await start({
      configureSession: (request, { id, toolsets, server }) => void seen.push([request, { id, toolsets, server }]),
    })
    const headers = { 'X-User': 'ann', 'X-Issuer': 'https://a.example', 'X-Tier': 'gold', 'X-Other': 'yes' }
    await modern(`${url}/t/gold`, 'tools/list', {}, { headers })
    await modern(`${url}/t`, 'tools/list')
    const [[first, session] = [], [second, defaults] = []] = seen
    const user = { subject: 'ann', issuer: 'https://a.example', scopes: [], roles: [], claims: { tier: 'gold' } }
    expect(first?.user).to.deep.equal(user)
    expect(first?.route).to.deep.equal({ path: '/t/:set?', params: { set: 'gold' } })
    expect(first?.headers).to.include({ 'x-other': 'yes', 'mcp-method': 'tools/list' })
    expect(first?.ip).to.match(/127\.0\.0\.1$/)
    const server = { name: 'test-host', version: '1.2.3' }
    expect(session).to.deep.equal({ id: undefined, toolsets: ['gold'], server })
    expect(second?.user).to.equal(undefined)
    expect(second?.route).to.deep.equal({ path: '/t/:set?', params: {} })
    expect(defaults).to.deep.include({ toolsets: ['basic', 'gold'] })
  })

  it('selects toolsets by claims for one caller only', async () => {
    const { url } = await start({
      async configureSession({ user }, session) {
        await Promise.resolve()
        if (user?.claims['tier'] === 'gold') session.addToolset('gold')
        if (user?.claims['tier'] === 'none') session.removeToolset('basic')
      },
    })
    expect(await list(url, { 'X-User': 'ann', 'X-Tier': 'gold' })).to.deep.equal(['a', 'g'])
    expect(await list(url)).to.deep.equal(['a'])
    expect(await list(url, { 'X-User': 'bob', 'X-Tier': 'none' })).to.deep.equal([])
    const { error } = (await modern(url, 'tools/call', { name: 'g' })).message
    expect(error.code).to.equal(-32602)
  })

  it('adds definitions that are listed and callable', async () => {
    const { url } = await start({ configureSession: ({ user }, session) => void (user && session.add(extra)) })
    const headers = { 'X-User': 'ann' }
    expect(await list(url, headers)).to.deep.equal(['a', 'x'])
    const { result } = (await modern(url, 'tools/call', { name: 'x' }, { headers })).message
    expect(result.content[0].text).to.equal('x')
    expect((await modern(url, 'tools/call', { name: 'x' })).message.error.code).to.equal(-32602)
  })

  it('sets server info and capabilities in server/discover, results and initialize', async () => {
    const server = { name: 'for-ann', version: '9', instructions: 'Hello, Ann.' }
    const { url } = await start({
      stateless: true,
      configureSession({ user }, session) {
        if (!user) return
        session.server = server
        session.capabilities = { experimental: { 'a.example': { b: 1 } } }
      },
    })
    const headers = { 'X-User': 'ann' }
    const { result } = (await modern(url, 'server/discover', {}, { headers })).message
    expect(result._meta[META.serverInfo]).to.deep.equal({ name: 'for-ann', version: '9' })
    expect(result.instructions).to.equal('Hello, Ann.')
    expect(result.capabilities).to.deep.equal({ logging: {}, tools: {}, experimental: { 'a.example': { b: 1 } } })
    const called = (await modern(url, 'tools/call', { name: 'a' }, { headers })).message
    expect(called.result._meta[META.serverInfo]).to.deep.equal({ name: 'for-ann', version: '9' })
    const params = { protocolVersion: '2025-11-25', clientInfo: { name: 'c', version: '1' }, capabilities: {} }
    const older = (await legacy(url, 'initialize', params, { headers })).message
    expect(older.result.serverInfo).to.deep.equal({ name: 'for-ann', version: '9' })
    expect(older.result.instructions).to.equal('Hello, Ann.')
    const other = (await modern(url, 'server/discover')).message.result
    expect(other._meta[META.serverInfo].name).to.equal('test-host')
    expect(other.capabilities).to.deep.equal({ logging: {}, tools: {} })
  })

  it('makes lists private', async () => {
    const scope = async (url: string) => (await modern(url, 'tools/list')).message.result.cacheScope
    expect(await scope((await start({ configureSession: () => undefined })).url)).to.equal('private')
    expect(await scope((await start({})).url)).to.equal('public')
  })

  const mistakes: Array<[string, Config['configureSession'], RegExp]> = [
    ['throws', () => Promise.reject(new Error('secret of the host')), /^secret of the host$/],
    [
      'names an unknown toolset',
      (_, session) => session.addToolset('silver'),
      /^configureSession, route \/: there is no toolset "silver"; available: basic, gold$/,
    ],
    [
      'adds a name twice',
      (_, session) => session.add(tool('a')),
      /two tools are called "a": in toolset "basic" and in/,
    ],
    [
      'adds a bad definition',
      (_, session) => session.add({ ...extra, input: { type: 'text' } }),
      /tool "x": its input/,
    ],
    [
      'adds a tool that requires access',
      (_, session) => session.add({ ...extra, access: 'admin' }),
      /configureSession: tool "x" requires access "admin"/,
    ],
    [
      'leaves a server without a name',
      (_, session) => {
        session.server = { version: '1' } as never
      },
      /`server` without a name/,
    ],
  ]
  for (const [what, configureSession, words] of mistakes) {
    it(`responds 500 and logs the error if it ${what}; no tool runs`, async () => {
      const { url, log } = await start({ stateless: true, ...(configureSession && { configureSession }) })
      const newer = await modern(url, 'tools/call', { name: 'a' })
      const older = await legacy(url, 'tools/call', { name: 'a' })
      expect([newer.status, older.status]).to.deep.equal([500, 200])
      for (const { error } of [newer.message, older.message]) {
        expect(error.code).to.equal(-32603)
        expect(error.message)
          .to.match(/^Internal error/)
          .and.not.match(words)
      }
      const errors = log.filter(({ level }) => level === 'error')
      expect(errors.map(({ route }) => route)).to.deep.equal(['/', '/'])
      const logged = errors.map(({ err }) => (err as Error).message)
      for (const text of logged) expect(text).to.match(words)
      expect(trace).to.deep.equal([])
    })
  }

  it('rejects a caller with a HostError', async () => {
    const { url } = await start({
      configureSession() {
        throw new HostError('forbidden', { detail: 'not on Sundays' })
      },
    })
    const { status, message } = await modern(url, 'tools/call', { name: 'a' })
    expect([status, message.error.message]).to.deep.equal([403, 'Forbidden: not on Sundays'])
  })

  it('receives a signal that aborts on client disconnect', async () => {
    const [running, aborted] = [createGate(), createGate()]
    const { url } = await start({
      configureSession: (_request, _session, { signal }) =>
        new Promise(resolve => {
          signal.addEventListener('abort', () => {
            aborted.open()
            resolve()
          })
          running.open()
        }),
    })
    await abandon(url, running.opened)
    await aborted.opened
  })
})
