// The access log plugin: line content, request ids, sampling, file rotation and write errors.
import { readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { Tally } from '../../../cli/report/tally.ts'
import { defineTool, ToolError } from '../../../core/index.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { eventually } from '../../support/eventually.ts'
import { modern, post } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { inSeconds, makeKey, signToken, startIssuer, stopIssuers } from '../../support/test-issuer.ts'
import { linesIn } from '../audit/audited-host.ts'

after(removeFolders)
afterEach(stopHosts)
after(stopIssuers)

const SECRET = 'an argument that nobody may read'
const toolset = [
  defineTool({ name: 'say', input: { type: 'object', properties: { text: {} } }, handler: () => 'said' }),
  defineTool({
    name: 'fail',
    handler() {
      throw new ToolError('no luck')
    },
  }),
  defineTool({ name: 'wait', handler: () => new Promise(resolve => setTimeout(resolve, 30, 'waited')) }),
  defineTool({ name: 'id', handler: (_, { headers }) => String(headers['x-request-id']) }),
]

async function startLogged(options: object = {}) {
  const folder = await makeFolder({})
  const file = join(folder, 'access.log')
  const started = await startHost({
    toolsets: { all: toolset },
    routes: { '/mcp': { toolsets: 'all' }, '/quiet': { toolsets: 'all', plugins: { 'access-log': false } } },
    plugins: { 'transport-streamable': {}, 'access-log': { file, ...options } },
  })
  /** The lines, once all are written. */
  async function lines() {
    await started.host.close({ grace: 0 })
    const text = await readFile(file, 'utf8')
    return text.split('\n').filter(line => line !== '')
  }
  const call = (name: string, args = {}, path = '/mcp', headers = {}) =>
    modern(`${started.url}${path}`, 'tools/call', { name, arguments: args }, { headers })
  return { ...started, file, lines, call }
}

const parsed = (lines: readonly string[]) => lines.map(line => JSON.parse(line) as Record<string, unknown>)

describe('access-log plugin', () => {
  it('says who refused a token or a caller and why, as the audit, the report and the log of the host do', async () => {
    const issuer = await startIssuer()
    const folder = await makeFolder({})
    const [access, audit] = [join(folder, 'access.log'), join(folder, 'audit.jsonl')]
    const { url, host, log } = await startHost({
      toolsets: { all: toolset },
      routes: { '/mcp': { toolsets: 'all', authorize: { scope: 'use' } } },
      plugins: {
        'transport-streamable': {},
        'auth-jwt': { authority: issuer.url, audience: 'https://mcp.example' },
        'tool-policy': {},
        'access-log': { file: access },
        audit: { file: audit },
      },
    })
    const claims = (changes = {}) => issuer.claims('https://mcp.example', changes)
    const tokens = {
      'the token has expired': issuer.token('https://mcp.example', { exp: inSeconds(-600) }),
      'the token is for another audience': issuer.token('https://other.example'),
      'the signature of the token matches no key of its issuer': signToken(claims(), makeKey('other')),
      'the token is not a JWT': 'garbage',
      'lacks scope "use"': issuer.token('https://mcp.example'),
    }
    for (const token of Object.values(tokens))
      await modern(`${url}/mcp`, 'tools/call', { name: 'say' }, { headers: { Authorization: `Bearer ${token}` } })
    await host.close({ grace: 0 })
    const refusals = Object.keys(tokens).map(reason => {
      const isToken = !reason.startsWith('lacks')
      return { by: isToken ? 'auth-jwt' : 'tool-policy', error: isToken ? 'unauthorized' : 'forbidden', reason }
    })
    for (const file of [access, audit]) {
      const told = (await linesIn(file)).filter(({ outcome }) => outcome === 'refused')
      expect(
        told.map(({ by, error, reason }) => ({ by, error, reason })),
        file,
      ).to.deep.equal(refusals)
    }
    const denied = log.filter(line => 'denied' in line)
    expect(denied.map(({ by, plugin, reason }) => [by ?? plugin, reason])).to.deep.equal(
      refusals.map(({ by, reason }) => [by, reason]),
    )
    const tally = new Tally({ since: -Infinity, until: Infinity, future: Infinity })
    for (const line of await linesIn(access)) tally.line(JSON.stringify(line))
    const causes = tally.report(10, []).causes.map(({ by, error, reason }) => ({ by, error, reason }))
    expect(causes).to.have.deep.members(refusals)
  })

  it('writes one line per request, including refused requests, without arguments', async () => {
    const { url, call, lines, file } = await startLogged()
    await call('say', { text: SECRET })
    await call('fail')
    await call('nothing')
    await call('say', {}, '/quiet')
    await post(`${url}/mcp`, '{')
    await fetch(`${url}/gone?token=${encodeURIComponent(SECRET)}`, { headers: { Authorization: `Bearer ${SECRET}` } })
    const text = await lines()
    const found = parsed(text).map(({ route, method, name, outcome, error, verb, status }) =>
      [route, method, name, outcome, error, verb, status].filter(field => field !== undefined),
    )
    expect(found).to.have.deep.members([
      ['/mcp', 'tools/call', 'say', 'ok'],
      ['/mcp', 'tools/call', 'fail', 'tool_error'],
      ['/mcp', 'tools/call', '_OTHER', 'error', 'invalidParams'],
      ['/mcp', 'refused', 'parseError', 'POST', 400],
      ['refused', 'notFound', 'GET', 404],
    ])
    expect(text.join('\n')).not.to.include(SECRET).and.not.to.include(encodeURIComponent(SECRET))
    expect((await stat(file)).mode & 0o777).to.equal(0o640)
  })

  it('keeps a valid X-Request-Id, generates one otherwise, and passes it to client and handler', async () => {
    const { call, lines } = await startLogged()
    const ids: Array<string | null> = []
    for (const given of ['mine-1', 'not an id', undefined]) {
      const { headers, message } = await call('id', {}, '/mcp', { 'X-Request-Id': given })
      expect(message.result.content[0].text).to.equal(headers.get('x-request-id'))
      ids.push(headers.get('x-request-id'))
    }
    expect(ids[0]).to.equal('mine-1')
    expect(ids[1])
      .to.match(/^[\da-f-]{36}$/)
      .and.not.to.equal(ids[2])
    expect(parsed(await lines()).map(({ requestId }) => requestId)).to.deep.equal(ids)
  })

  it('with sample 0 still writes failed and slow requests', async () => {
    const { call, lines } = await startLogged({ sample: 0, slow: '20ms' })
    for (const name of ['say', 'wait', 'fail', 'nothing', 'say']) await call(name)
    const found = parsed(await lines()).filter(({ slow, outcome }) => outcome !== 'ok' || slow)
    const names = found.map(({ name, slow }) => [name, slow === true])
    expect(names)
      .to.deep.include(['wait', true])
      .and.to.deep.include(['_OTHER', names.find(([name]) => name === '_OTHER')?.[1]])
    expect(names.map(([name]) => name)).to.include('fail')
  })

  it('writes human-readable lines with the text format', async () => {
    const { call, lines } = await startLogged({ format: 'text' })
    await call('say')
    const [line] = await lines()
    expect(line).to.match(
      /^[\d-]+T[\d:.]+Z +[\d.]+ ms {2}ok {2}\/mcp {2}tools\/call say {2}anonymous {2}"test-client 0\.0\.1"$/,
    )
  })

  it('logs a full disk once, keeps serving and closes in time', async () => {
    const { call, log, host } = await startLogged({ file: '/dev/full' })
    for (let count = 0; count < 40; count++) expect((await call('say')).status).to.equal(200)
    const told = () => log.filter(({ message }) => message?.startsWith('Cannot write the access log'))
    await eventually('the line of the log', () => told().length > 0)
    expect(told()).to.have.length(1)
    expect(String(told()[0]?.['problem'])).to.match(/ENOSPC/)
    await host.close({ grace: 0 })
    const left = log.find(({ message }) => message === 'Access log closed with unwritten lines')
    expect(left?.['lines']).to.equal(40)
  })

  it('opens a new file after log rotation by rename or removal', async () => {
    const logs = await Promise.all([startLogged(), startLogged()])
    const linesIn = async (path: string) => (await readFile(path, 'utf8').catch(() => '')).split('\n').length - 1
    const moves = [(file: string) => rename(file, `${file}.1`), (file: string) => rm(file)]
    const kept = logs.map(async ({ call, file }, index) => {
      await call('say')
      await eventually('the first line', async () => (await linesIn(file)) === 1)
      await moves[index]?.(file)
      let calls = 1
      await eventually('a new file', async () => {
        await call('say')
        calls++
        return (await linesIn(file)) > 0
      })
      return { calls, lines: await linesIn(`${file}.1`) }
    })
    const [renamed, removed] = await Promise.all(kept)
    expect(renamed?.lines).to.be.within(1, renamed?.calls ?? 0)
    expect(removed?.lines).to.equal(0)
  })

  it('records the sample rate in sampled lines', async () => {
    const { call, lines } = await startLogged({ sample: 0.5 })
    for (let count = 0; count < 40; count++) await call('say')
    await call('fail')
    const found = parsed(await lines())
    expect(new Set(found.map(({ outcome, sample }) => `${outcome} ${sample}`))).to.deep.equal(
      new Set(['ok 0.5', 'tool_error undefined']),
    )
  })

  it('fails startup if the file cannot be opened, and names it', async () => {
    const error = await startLogged({ file: '/dev/null/access.log' }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(String(error)).to.match(/access-log/s)
  })
})
