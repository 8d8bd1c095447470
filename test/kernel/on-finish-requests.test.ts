// Tests observer records of HTTP requests that do not become calls, and the privacy of record fields.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect } from 'chai'
import { defineResource, defineTool, HostError } from '../../core/index.ts'
import type { CallRecord } from '../../core/plugin.ts'
import { META } from '../../core/transport.ts'
import { plugin } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { createMeta, modern, modernRequest, post } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const toolset = [
  defineTool({ name: 'hello', handler: () => 'hello' }),
  defineTool({ name: 'guarded', access: 'staff', handler: () => 'secret' }),
  defineResource({ uriTemplate: 'note://{id}', name: 'note', handler: ({ id }) => `note ${id}` }),
]

/** The caller is who the header says. */
const identifies = plugin(
  host =>
    host.authenticate((ctx, next) => {
      const subject = ctx.get('x-user')
      if (subject === 'nobody') throw new HostError('unauthorized', { detail: 'no such user' })
      if (subject)
        ctx.state.user = { issuer: 'test', subject, clientId: 'cli\u001b[2J', scopes: [], roles: [], claims: {} }
      return next()
    }),
  { provides: ['user'] },
)

const limits = plugin(host =>
  host.onRequest((ctx, next) => {
    if (ctx.get('x-much') !== '') throw new HostError('tooManyRequests', { reason: 'the ninth in a second' })
    return next()
  }),
)

const NAMES = ['A'.repeat(500), 'hello\n', '', 'constructor', '__proto__']

async function startObserved() {
  const records: CallRecord[] = []
  const elsewhere: CallRecord[] = []
  const observer = plugin(host => host.onFinish(record => void records.push(record)))
  const other = plugin(host => host.onFinish(record => void elsewhere.push(record)))
  const { url } = await startHost({
    http: { port: 0, maxBodySize: '10kb' },
    toolsets: { all: toolset },
    routes: {
      '/mcp': { toolsets: 'all', plugins: { other: false } },
      '/other': { toolsets: 'all' },
      '/t/:category': { toolsets: ':category', plugins: { other: false } },
    },
    plugins: {
      'transport-streamable': {},
      'tool-policy': { policies: { staff: { role: 'staff' } } },
      identifies,
      limits,
      observer,
      other,
    },
  })
  /** The records of what `act` asked, of which there are so many. */
  async function recordsOf(act: () => Promise<unknown>, count = 1): Promise<CallRecord[]> {
    records.splice(0)
    await act()
    await eventually(
      'the records',
      () => records,
      found => found.length >= count,
    )
    return records.splice(0)
  }
  return { url, elsewhere, recordsOf }
}

const told = ({ outcome, route, error, refusedBy, http }: CallRecord) => [
  outcome,
  route,
  error?.kind,
  refusedBy,
  http && `${http.verb} ${http.status}`,
]

describe('Observer records of HTTP requests', () => {
  it('exist once for each request that does not become a call', async () => {
    const { url, recordsOf, elsewhere } = await startObserved()
    const mcp = `${url}/mcp`
    const send =
      (headers: Record<string, string>, to = mcp, body = '{}') =>
      () =>
        post(to, body, headers)
    const { headers, body } = modernRequest('tools/list')
    const session = await openSession(mcp)
    const expected: ReadonlyArray<readonly [act: () => Promise<unknown>, ...told: unknown[]]> = [
      [send({ 'x-user': 'nobody' }), 'refused', '/mcp', 'unauthorized', 'identifies', 'POST 401'],
      [send({ 'x-much': '1' }), 'refused', '/mcp', 'tooManyRequests', 'limits', 'POST 429'],
      [send({ Origin: 'https://evil.example' }), 'refused', '/mcp', 'originNotAllowed', 'mcp-host', 'POST 403'],
      [send({}, `${url}/t/nothing`), 'refused', '/t/:category', 'notFound', 'mcp-host', 'POST 404'],
      [send({}, `${url}/nothing`), 'refused', undefined, 'notFound', 'mcp-host', 'POST 404'],
      [send({}, mcp, 'x'.repeat(20_000)), 'refused', '/mcp', 'payloadTooLarge', 'mcp-host', 'POST 413'],
      [send({ Accept: 'text/html' }), 'refused', '/mcp', 'notAcceptable', 'mcp-host', 'POST 406'],
      [send({}, mcp, '{'), 'refused', '/mcp', 'parseError', 'mcp-host', 'POST 400'],
      [
        send({ 'Mcp-Session-Id': 'mine' }, mcp, '{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        'refused',
        '/mcp',
        'sessionNotFound',
        'mcp-host',
        'POST 404',
      ],
      [
        () => post(mcp, body, { ...headers, 'Mcp-Method': 'tools/call' } as never),
        'refused',
        '/mcp',
        'headerMismatch',
        'mcp-host',
        'POST 400',
      ],
      [() => fetch(mcp, { method: 'PUT' }), 'refused', '/mcp', 'methodNotAllowed', 'mcp-host', 'PUT 405'],
      [
        () => session.request('initialize', { protocolVersion: '2025-11-25' }),
        'refused',
        '/mcp',
        'invalidRequest',
        'mcp-host',
        'POST 400',
      ],
      [
        () => session.send({ method: 'notifications/roots/list_changed' }),
        'ok',
        '/mcp',
        undefined,
        undefined,
        'POST 202',
      ],
      [() => session.end(), 'ok', '/mcp', undefined, undefined, 'DELETE 204'],
    ]
    const found: unknown[][] = []
    for (const [act] of expected) found.push(...(await recordsOf(act)).map(told))
    expect(found).to.deep.equal(expected.map(([, ...rest]) => rest))
    expect(elsewhere.map(told)).to.deep.equal([expected[4]?.slice(1)])
  })

  it('exist for a request whose client left while outer middleware delayed it', async () => {
    const records: CallRecord[] = []
    const { host } = await startHost({
      http: { port: 0, publicUrl: 'https://mcp.acme.example' },
      toolsets: { all: [] },
      routes: { '/': { toolsets: 'all' } },
      plugins: {
        'transport-streamable': {},
        observer: plugin(host => host.onFinish(record => void records.push(record))),
      },
    })
    const handle = host.callback()
    const server = createServer((req, res) => res.once('close', () => setImmediate(() => void handle(req, res))))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const leaving = new AbortController()
    server.once('request', () => leaving.abort())
    const { port } = server.address() as AddressInfo
    await fetch(`http://127.0.0.1:${port}/nothing`, { signal: leaving.signal }).catch(() => undefined)
    await eventually('a record', () => records.length === 1)
    server.close()
  })

  it('exist once for a request whose client left during a step that hangs', async () => {
    const clock = createManualClock()
    const records: CallRecord[] = []
    let entered = 0
    let release = () => {}
    const plugins = {
      observer: plugin(host => host.onFinish(record => void records.push(record))),
      hangs: plugin(host =>
        host.onRequest(async ({ path }, next) => {
          entered++
          if (path !== '/') return next()
          await new Promise<void>(resolve => {
            release = resolve
          })
          return next()
        }),
      ),
    }
    const routes = { '/': { toolsets: 'all' } } as const
    const config = { toolsets: { all: [] }, routes, plugins: { 'transport-streamable': {}, ...plugins } }
    const { url } = await startHost(config, undefined, { clock })
    const leaving = new AbortController()
    const request = fetch(url, { signal: leaving.signal }).catch(() => undefined)
    await eventually('the step', () => entered === 1)
    clock.advance(60_000)
    expect(records).to.deep.equal([])
    leaving.abort()
    await request
    await eventually('a record', () => {
      clock.advance(60_000)
      return records.length > 0
    })
    release()
    const other = await fetch(`${url}/nothing`)
    await other.text()
    await eventually('the record of the next request', () => records.length > 1)
    expect(records.map(({ outcome, http }) => [outcome, http?.verb])).to.deep.equal([
      ['cancelled', 'GET'],
      ['refused', 'GET'],
    ])
  })

  it('state the failed access rule and the plugin that refused the call', async () => {
    const { url, recordsOf } = await startObserved()
    const call = (user?: string) => () =>
      modern(`${url}/mcp`, 'tools/call', { name: 'guarded' }, { headers: { 'x-user': user } })
    const [anonymous] = await recordsOf(call())
    expect([anonymous?.outcome, anonymous?.error?.kind, anonymous?.refusedBy]).to.deep.equal([
      'error',
      'unauthorized',
      'tool-policy',
    ])
    const [known] = await recordsOf(call('ann'))
    expect([known?.error?.kind, known?.refusedBy, known?.item?.name]).to.deep.equal([
      'forbidden',
      'tool-policy',
      'guarded',
    ])
    expect(known?.error?.reason).to.match(/role "staff"/)
  })

  it('contain stable pseudonyms for users and sessions', async () => {
    const { url, recordsOf } = await startObserved()
    const mcp = `${url}/mcp`
    const users: unknown[] = []
    for (const subject of ['ann', 'bob', 'ann', undefined]) {
      const [record] = await recordsOf(() => modern(mcp, 'tools/list', {}, { headers: { 'x-user': subject } }))
      users.push(record?.user)
      expect(record?.oauthClient).to.equal(subject && 'cli?[2J')
    }
    expect(users[0])
      .to.match(/^[\da-f]{16}$/)
      .and.to.equal(users[2])
      .and.not.to.equal(users[1])
    expect(users[3]).to.equal(undefined)
    const session = await openSession(mcp)
    const [first, second] = [
      await recordsOf(() => session.request('ping')),
      await recordsOf(() => session.request('tools/list')),
    ]
    expect(first[0]?.session)
      .to.match(/^[\da-f]{16}$/)
      .and.to.equal(second[0]?.session)
    expect(session.id).not.to.include(first[0]?.session ?? '')
    const [ended] = await recordsOf(() => session.end())
    expect(ended?.session).to.equal(first[0]?.session)
    const [unknown] = await recordsOf(() => session.end())
    expect([unknown?.outcome, unknown?.session]).to.deep.equal(['refused', undefined])
  })

  it('contain the session of a request without a call only for its owner', async () => {
    const { url, recordsOf } = await startObserved()
    const session = await openSession(`${url}/mcp`, { headers: { 'x-user': 'ann' } })
    const sessionOf = async (path: string, user?: string) => {
      const headers = { ...(user && { 'x-user': user }), 'Mcp-Session-Id': session.id, Accept: 'text/html' }
      const [record] = await recordsOf(async () => (await fetch(`${url}${path}`, { headers })).text())
      expect(record?.http?.status).to.equal(200)
      return record?.session
    }
    expect(await sessionOf('/mcp', 'ann')).to.match(/^[\da-f]{16}$/)
    for (const [path, user] of [['/mcp', 'bob'], ['/mcp'], ['/other', 'ann']] as const)
      expect(await sessionOf(path, user)).to.equal(undefined)
  })

  it('state an aborted upload as cancelled, and a page for browsers as ok', async () => {
    const { url, recordsOf } = await startObserved()
    const { port, hostname } = new URL(url)
    const [aborted] = await recordsOf(async () => {
      const socket = connect(Number(port), hostname)
      const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
      // The response 100 Continue shows that the host reads the body.
      socket.write(`${head}Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n`)
      await once(socket, 'data')
      socket.write('{')
      socket.destroy()
    })
    expect([aborted?.outcome, aborted?.error, aborted?.refusedBy]).to.deep.equal(['cancelled', undefined, undefined])
    const [page] = await recordsOf(async () => (await fetch(`${url}/mcp`, { headers: { Accept: 'text/html' } })).text())
    expect(page && told(page)).to.deep.equal(['ok', '/mcp', undefined, undefined, 'GET 200'])
  })

  it('use registered names and replace unknown names with one placeholder', async () => {
    const { url, recordsOf } = await startObserved()
    const mcp = `${url}/mcp`
    const names = new Set<string | undefined>()
    for (const name of [...NAMES, 'hello']) {
      const [record] = await recordsOf(() => modern(mcp, 'tools/call', { name }))
      // A name that its header cannot say never becomes a call.
      if (record?.call) names.add(record.item?.name)
      else expect([record?.outcome, record?.item]).to.deep.equal(['refused', undefined])
    }
    for (const uri of ['note://1', 'note://2', `note://${'9'.repeat(300)}`, 'other://1']) {
      const [record] = await recordsOf(() => modern(mcp, 'resources/read', { uri }))
      names.add(record?.item?.name)
    }
    expect([...names].sort()).to.deep.equal(['_OTHER', 'hello', 'note://{id}'])
    const methods = new Set<string | undefined>()
    for (const method of ['acme/one', 'acme/two', 'tools/list']) {
      const [record] = await recordsOf(() => modern(mcp, method))
      methods.add(record?.method)
    }
    expect([...methods].sort()).to.deep.equal(['_OTHER', 'tools/list'])
  })

  it('contain valid request and trace ids, `_meta` trace before header, and body sizes', async () => {
    const { url, recordsOf } = await startObserved()
    const mcp = `${url}/mcp`
    const trace = (digit: string) => `00-${digit.repeat(32)}-${'1'.repeat(16)}-01`
    const recordWith = async (headers: Record<string, string>, meta = {}) =>
      (await recordsOf(() => modern(mcp, 'tools/call', { name: 'hello' }, { headers, meta })))[0]
    const both = await recordWith(
      { 'X-Request-Id': 'req-1', traceparent: trace('a') },
      createMeta({ traceparent: trace('b') }),
    )
    expect([both?.requestId, both?.traceId]).to.deep.equal(['req-1', 'b'.repeat(32)])
    const header = await recordWith({ 'X-Request-Id': 'a b', traceparent: trace('a') })
    expect([header?.requestId, header?.traceId]).to.deep.equal([undefined, 'a'.repeat(32)])
    const neither = await recordWith({ 'X-Request-Id': 'x'.repeat(129), traceparent: trace('0') })
    expect([neither?.requestId, neither?.traceId]).to.deep.equal([undefined, undefined])
    const { text } = await modern(mcp, 'tools/call', { name: 'hello' })
    expect(neither?.bytesOut).to.equal(Buffer.byteLength(text))
    expect(neither?.bytesIn).to.be.within(100, 1_000)
    expect(Math.abs((neither?.at ?? 0) - Date.now())).to.be.lessThan(60_000)
  })

  it('count received body bytes only', async () => {
    const { url, recordsOf } = await startObserved()
    const [record] = await recordsOf(async () => {
      const { port, hostname } = new URL(url)
      const socket = connect(Number(port), hostname)
      socket.write('PUT /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{}')
      await once(socket, 'data')
      socket.destroy()
    })
    expect(record?.http).to.deep.equal({ verb: 'PUT', status: 404 })
    expect(record?.bytesIn).to.equal(undefined)
  })

  it('truncate client info and strip terminal control characters', async () => {
    const { url, recordsOf } = await startObserved()
    const clientInfo = { name: `\u001b[2J${'n'.repeat(100)}`, version: 'v\r\n'.repeat(50) }
    const [record] = await recordsOf(() =>
      modern(`${url}/mcp`, 'tools/list', {}, { meta: { [META.clientInfo]: clientInfo } }),
    )
    expect(record?.client?.name).to.equal(`?[2J${'n'.repeat(60)}`)
    expect(record?.client?.version).to.match(/^[v?]{32}$/)
  })
})
