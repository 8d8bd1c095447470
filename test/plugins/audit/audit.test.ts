// The audit trail: which requests it records, the fields of a line, redaction, and the hash chain under concurrency.
import { readFile, stat } from 'node:fs/promises'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import type { CallRecord } from '../../../core/plugin.ts'
import { META } from '../../../core/transport.ts'
import { createAnonymousRefusals } from '../../../plugins/audit/entry.ts'
import { removeFolders } from '../../config/folder.ts'
import { ALL_CAPABILITIES } from '../../fixtures/asking-client.ts'
import { legacy, modern, post } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { stopHosts } from '../../support/start-host.ts'
import { linesIn, SECRET, startAudited, verdictOn, verifyFolder } from './audited-host.ts'

after(removeFolders)
afterEach(stopHosts)

const PRIVATE = 'what nobody may read'

/** Whoever sends a token is `ada@example.com`. */
const login = definePlugin({
  provides: ['user'],
  setup(host) {
    host.authenticate((ctx, next) => {
      if (ctx.req.headers.authorization === undefined) return next()
      const user = { subject: 'ada@example.com', issuer: 'https://login.example', clientId: 'desk' }
      ctx.state.user = { ...user, scopes: [], roles: [], claims: {} }
      return next()
    })
  },
})()

const AUTHORIZATION = { Authorization: `Bearer ${PRIVATE}` }

describe('audit: recorded events', () => {
  it('records the transport of a session and the requests sent to its client', async () => {
    const asks = defineTool({
      name: 'asks',
      async handler(_args, ctx) {
        await ctx.elicit({
          message: 'sure?',
          requestedSchema: { type: 'object', properties: { yes: { type: 'boolean' } } },
        })
        return 'asked'
      },
    })
    const { url, close, file } = await startAudited({ config: { toolsets: { all: [asks] } } })
    const meta = { [META.clientCapabilities]: ALL_CAPABILITIES }
    await modern(`${url}/mcp`, 'tools/call', { name: 'asks' }, { meta })
    const session = await openSession(`${url}/mcp`, { revision: '2025-06-18' })
    await session.request('tools/call', { name: 'asks' })
    await close()
    const calls = (await linesIn(file)).filter(({ name }) => name === 'asks')
    expect(calls.map(({ outcome, transport, asked }) => [outcome, transport, asked])).to.deep.equal([
      ['input_required', undefined, ['elicitation/create']],
      ['tool_error', 'transport-streamable', ['elicitation/create']],
    ])
  })

  it('aggregates repeated anonymous refusals and records authenticated requests individually', async () => {
    const { url, call, close, file, folder } = await startAudited({ config: { plugins: { login } } })
    for (let count = 0; count < 30; count++) await fetch(`${url}/gone`)
    for (let count = 0; count < 20; count++) await call('say')
    for (let count = 0; count < 20; count++) await fetch(`${url}/gone`, { headers: AUTHORIZATION })
    await close()
    const lines = await linesIn(file)
    const ofNobody = lines.filter(({ event, user }) => event === 'request' && user === undefined)
    expect(lines.filter(({ name }) => name === 'say')).to.have.length(20)
    const [counts] = lines.filter(({ event }) => event === 'refusals')
    expect(counts).to.include({ decision: 'refused', ip: '127.0.0.1', count: 30 + 20 - ofNobody.length })
    expect(ofNobody).to.have.length(10)
    expect(counts?.['errors']).to.deep.equal({ 'mcp-host notFound': 40 })
    expect(Date.parse(String(counts?.['from']))).to.be.at.most(Date.parse(String(counts?.['until'])))
    expect(await verdictOn(folder)).to.equal('whole, 1')
  })

  it('aggregates refusals by network, and all others after 100 networks', () => {
    const pushed: string[] = []
    const refusals = createAnonymousRefusals(fields => pushed.push(fields))
    const record = (ip: string) => ({ outcome: 'refused', ip, at: 1, refusedBy: 'mcp-host' }) as unknown as CallRecord
    const written = Array.from({ length: 5_000 }, (_, index) =>
      refusals.count(record(`10.0.${index >> 8}.${index & 255}`)),
    )
    refusals.close()
    expect(written.filter(counted => !counted)).to.have.length(110)
    const counts = pushed.map(fields => JSON.parse(fields))
    expect(counts.map(({ ip }) => ip)).to.deep.equal(['_OTHER'])
    expect(counts[0].count).to.equal(5_000 - 110)
  })

  it('normalises IP address spellings and keeps IPv4 separate from IPv6 networks', () => {
    const pushed: string[] = []
    const refusals = createAnonymousRefusals(fields => pushed.push(fields))
    const record = (ip: string) => ({ outcome: 'refused', ip, at: 1, refusedBy: 'mcp-host' }) as unknown as CallRecord
    const spellings = ['2001:DB8::', '2001:db8::1', '::ffff:1.2.3.4', '::ffff:102:304', '1.2.3.4', '::1']
    for (const ip of spellings) for (let count = 0; count < 10; count++) refusals.count(record(ip))
    refusals.close()
    const counts = pushed.map(fields => JSON.parse(fields)).map(({ ip, count }) => `${ip}: ${count}`)
    // Of each the first ten have lines of their own.
    expect(counts).to.deep.equal(['2001:db8:0:0:0:0:0:0/64: 10', '1.2.3.4: 20'])
  })

  it('warns about unknown names in `arguments`, with a suggestion', async () => {
    const read = defineTool({
      name: 'read_file',
      input: { type: 'object', properties: { path: { type: 'string' } } },
      handler: () => 'read',
    })
    const open = defineTool({
      name: 'open',
      input: { type: 'object', anyOf: [{ required: ['url'] }] },
      handler: () => 'open',
    })
    const listed = { read_file: ['path', 'pathh'], readFile: ['path'], open: ['anything'] }
    const { log } = await startAudited({
      config: { toolsets: { all: [read, open] } },
      options: { arguments: listed },
    })
    const told = log.filter(({ level }) => level === 'warn').map(({ message }) => String(message))
    expect(told.filter(text => text.includes('arguments'))).to.have.length(2)
    expect(told.join('\n'))
      .to.match(/arguments\.read_file.*"pathh".*"path"\?/s)
      .and.match(/arguments\.readFile.*"read_file"\?/s)
  })

  it('records calls and refused requests with the caller and the deciding rule', async () => {
    const { url, call, close, file, folder } = await startAudited()
    await call('say')
    await call('fail')
    await call('nothing')
    await modern(`${url}/mcp`, 'tools/list')
    await modern(`${url}/mcp`, 'made/up')
    await post(`${url}/mcp`, '{')
    await fetch(`${url}/gone`)
    await fetch(`${url}/gone`, { headers: { Origin: 'https://evil.example' } })
    await close()
    const lines = await linesIn(file)
    const found = lines.map(({ event, decision, method, name, error, by }) =>
      [event, decision, method, name, error, by].filter(field => field !== undefined).join(' '),
    )
    expect(found[0]).to.equal('opened')
    expect(found.at(-1)).to.equal('closed')
    expect(found.slice(1, -1)).to.have.members([
      'call allowed tools/call say',
      'call allowed tools/call fail',
      'call refused tools/call _OTHER invalidParams mcp-host',
      'call refused _OTHER methodNotFound mcp-host',
      'request refused parseError mcp-host',
      'request refused notFound mcp-host',
      'request refused originNotAllowed mcp-host',
    ])
    const said = lines.find(({ name }) => name === 'say')
    expect(said).to.include({ route: '/mcp', client: 'test-client 0.0.1', ip: '127.0.0.1' })
    expect(Date.parse(String(said?.['time']))).to.be.greaterThan(0)
    expect((await stat(file)).mode & 0o777).to.equal(0o640)
    expect(await verdictOn(folder)).to.equal('whole, 1')
  })

  it('records sessions from initialize to the end under one pseudonym', async () => {
    const { url, close, file } = await startAudited()
    const clientInfo = { name: 'older', version: '1' }
    const opening = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const opened = await legacy(`${url}/mcp`, 'initialize', opening)
    const id = String(opened.headers.get('mcp-session-id'))
    const headers = { 'Mcp-Session-Id': id, 'MCP-Protocol-Version': '2025-11-25' }
    await legacy(`${url}/mcp`, 'ping', {}, { headers })
    await fetch(`${url}/mcp`, { method: 'DELETE', headers })
    await close()
    const lines = (await linesIn(file)).filter(({ session }) => session !== undefined)
    expect(lines.map(({ event, method }) => [event, method])).to.deep.equal([
      ['call', 'initialize'],
      ['session ended', undefined],
    ])
    expect(new Set(lines.map(({ session }) => session)).size).to.equal(1)
    expect(await readFile(file, 'utf8')).not.to.include(id)
  })

  it('records only listed arguments, truncated, and no other caller data', async () => {
    const options = { arguments: { say: ['path', 'id', 'deep', 'list'], other: ['text'] } }
    const { call, close, file } = await startAudited({ options, config: { plugins: { login } } })
    const path = `/a/\u001b[2J\u009b${'long'.repeat(100)}`
    const args = { path, id: 7, deep: { in: PRIVATE }, list: [PRIVATE], text: PRIVATE, token: PRIVATE }
    await call('say', args, AUTHORIZATION)
    await call('fail', { path: PRIVATE }, AUTHORIZATION)
    await close()
    const [said, failed] = (await linesIn(file)).filter(({ event }) => event === 'call')
    const cut = `/a/?[2J?${path.slice(8, 256)}…`
    expect(said?.['arguments']).to.deep.equal({ path: cut, id: 7, deep: '[an object]', list: '[a list of 1]' })
    expect(failed).not.to.have.property('arguments')
    expect(said?.['user']).to.match(/^[\da-f]{16}$/)
    expect(said).to.include({ oauthClient: 'desk' })
    const text = await readFile(file, 'utf8')
    expect(text).not.to.include(PRIVATE)
    expect(text).not.to.include('ada@example.com')
  })

  it('records the subject in clear text if configured', async () => {
    const { call, close, file } = await startAudited({ options: { subjects: 'clear' }, config: { plugins: { login } } })
    await call('say', {}, AUTHORIZATION)
    await close()
    const line = (await linesIn(file)).find(({ event }) => event === 'call')
    expect(line).to.include({ subject: 'ada@example.com', issuer: 'https://login.example' })
    expect(line?.['user']).to.match(/^[\da-f]{16}$/)
  })

  it('records the name of a hidden tool, but no caller-supplied unknown name', async () => {
    const hidden = defineTool({ name: 'delete_all', access: 'admin', handler: () => 'gone' })
    const { call, close, file } = await startAudited({
      config: {
        toolsets: { all: [hidden] },
        plugins: { 'tool-policy': { policies: { admin: { scope: 'admin' } } }, login },
      },
    })
    await call('delete_all', {}, AUTHORIZATION)
    await call(PRIVATE.replaceAll(' ', '-'), {}, AUTHORIZATION)
    await close()
    const lines = (await linesIn(file)).filter(({ event }) => event === 'call')
    expect(lines.map(({ name, decision }) => [name, decision])).to.deep.equal([
      ['delete_all', 'refused'],
      ['_OTHER', 'refused'],
    ])
    expect(String(lines[0]?.['reason'])).to.include('admin')
  })

  it('omits configured methods, except refused requests', async () => {
    const { url, call, close, file } = await startAudited({ options: { leaveOut: ['tools/call'] } })
    await call('say')
    await call('nothing')
    await modern(`${url}/mcp`, 'tools/list')
    await close()
    const calls = (await linesIn(file)).filter(({ event }) => event === 'call')
    expect(calls.map(({ method, name }) => [method, name])).to.have.deep.members([
      ['tools/call', '_OTHER'],
      ['tools/list', undefined],
    ])
  })

  it('records 50 concurrent calls once each in one chain', async () => {
    const { call, close, file, folder } = await startAudited({ options: { arguments: { say: ['n'] } } })
    await Promise.all(Array.from({ length: 50 }, (_, n) => call('say', { n })))
    await close()
    const lines = await linesIn(file)
    expect(lines.map(({ seq }) => seq)).to.deep.equal(Array.from({ length: 52 }, (_, index) => index + 1))
    const numbers = lines.flatMap(({ arguments: given }) => (given ? [(given as { n: number }).n] : []))
    expect(new Set(numbers).size).to.equal(50)
    const { chains } = await verifyFolder(folder)
    expect(chains[0]).to.include({ lines: 52, lost: 0 }).and.not.to.have.property('broken')
  })

  it('continues the chain after a restart, and warns if it has no key without secrets', async () => {
    const first = await startAudited()
    await first.call('say')
    await first.close()
    const second = await startAudited({ folder: first.folder })
    await second.close()
    expect(await verdictOn(first.folder)).to.equal('whole, 1')
    const keyless = await startAudited({ folder: first.folder, config: { secrets: [] } })
    await keyless.close()
    expect(keyless.log.map(({ message }) => message).join()).to.match(/the audit has no key/)
    const { chains } = await verifyFolder(first.folder, { allowPlain: true })
    expect(chains[0]?.signedBy).to.have.length(2)
    expect(await verdictOn(first.folder)).to.match(/^file: .*key/)
    expect(await verdictOn(first.folder, { allowPlain: true })).to.equal('whole, 1')
    const rotated = await startAudited({ folder: first.folder, config: { secrets: [`${SECRET} too`, SECRET] } })
    await rotated.close()
    const { signersOf } = await import('./audited-host.ts')
    const signers = signersOf(`${SECRET} too`, SECRET)
    expect(await verdictOn(first.folder, { allowPlain: true, signers })).to.equal('whole, 1')
  })
})
