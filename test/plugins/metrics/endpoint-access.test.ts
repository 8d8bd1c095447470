// Access to the metrics endpoint: its own port or a path with a token, and the exposition format.
import { createServer } from 'node:http'
import { expect } from 'chai'
import { defineTool } from '../../../core/index.ts'
import { eventually } from '../../support/eventually.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { exchange } from '../../support/stream-exchange.ts'
import { startMetered } from './scrape.ts'

afterEach(stopHosts)

// With spaces: the plugin accepts any text as a token.
const TOKEN = 'a token long enough to be one'
const config = {
  toolsets: { all: [defineTool({ name: 'say', handler: () => 'said' })] },
  routes: { '/mcp': { toolsets: 'all' } },
}
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

const failure = (options: object, http = {}) =>
  startHost({ ...config, http, plugins: { 'transport-streamable': {}, metrics: options } }).then(
    () => 'started',
    (error: Error) => error.message,
  )

describe('Metrics on their own port', () => {
  it('serve GET and HEAD at /metrics only', async () => {
    const { address } = await startMetered(config)
    const answer = await fetch(address)
    expect(answer.status).to.equal(200)
    expect(answer.headers.get('content-type')).to.equal('text/plain; version=0.0.4; charset=utf-8')
    expect(answer.headers.get('cache-control')).to.equal('no-store')
    expect(await answer.text()).to.include('# TYPE mcp_host_sessions gauge')
    const head = await fetch(address, { method: 'HEAD' })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
    expect(Number(head.headers.get('content-length'))).to.be.above(1_000)
    expect((await fetch(address.replace('/metrics', '/'))).status).to.equal(404)
    const posted = await fetch(address, { method: 'POST' })
    expect([posted.status, posted.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
  })

  it('refuse a foreign Host header (DNS rebinding)', async () => {
    const { address } = await startMetered(config)
    const asked = await exchange(address, { method: 'GET', headers: { Host: 'evil.example' } })
    expect(asked.status).to.equal(403)
  })

  it('require the token if one is configured', async () => {
    const { address } = await startMetered(config, { host: '0.0.0.0', token: TOKEN })
    for (const init of [{}, bearer('wrong'), bearer(`${TOKEN}x`), bearer(''), { headers: { Authorization: TOKEN } }]) {
      const refused = await fetch(address, init)
      expect([refused.status, refused.headers.get('www-authenticate')]).to.deep.equal([401, 'Bearer'])
      expect(await refused.text()).not.to.include('mcp_')
    }
    expect((await fetch(`${address}?token=${TOKEN}`)).status).to.equal(401)
    expect((await fetch(address, bearer(TOKEN))).status).to.equal(200)
  })

  it('use the OpenMetrics format if the client prefers it', async () => {
    const { address } = await startMetered(config, { process: true })
    const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1'
    for (let round = 0; round < 2; round++) {
      const answer = await fetch(address, { headers: { Accept: accept } })
      expect(answer.headers.get('content-type')).to.match(/^application\/openmetrics-text; version=1\.0\.0/)
      const text = await answer.text()
      expect(text).to.match(/# EOF\n$/)
      expect(text).to.match(/^# TYPE mcp_host_sessions_evicted counter\nmcp_host_sessions_evicted_total 0$/m)
      expect(text).to.match(/^process_cpu_user_seconds_total [\d.e-]+$/m)
      expect(text).not.to.include('_total_total')
      const plain = await (await fetch(address)).text()
      expect(plain).to.match(/^# TYPE mcp_host_sessions_evicted_total counter\nmcp_host_sessions_evicted_total 0$/m)
    }
  })

  it('stop with the host, separately for two hosts in one process', async () => {
    const one = await startMetered(config)
    const two = await startMetered(config, { process: true })
    expect(one.address).not.to.equal(two.address)
    expect((await fetch(two.address)).status).to.equal(200)
    await one.host.close({ grace: 0 })
    expect(await fetch(one.address).catch(() => 'closed')).to.equal('closed')
    expect((await fetch(two.address)).status).to.equal(200)
  })

  it('fail startup if the port is in use', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await new Promise(resolve => other.once('listening', resolve))
    const { port } = other.address() as { port: number }
    expect(await failure({ port })).to.match(new RegExp(`port ${port} of 127.0.0.1.*\`port\``))
    other.close()
  })
})

describe('Metrics at a path of the host', () => {
  it('require the token', async () => {
    const { url, log } = await startHost({
      ...config,
      plugins: { 'transport-streamable': {}, metrics: { path: '/metrics', token: TOKEN } },
    })
    expect(log.some(({ message }) => message === 'serving metrics')).to.equal(false)
    for (const init of [{}, bearer('wrong')]) {
      const refused = await fetch(`${url}/metrics`, init)
      expect([refused.status, refused.headers.get('www-authenticate')]).to.deep.equal([401, 'Bearer'])
    }
    const answer = await fetch(`${url}/metrics`, bearer(TOKEN))
    expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ])
    await eventually('the refusals', async () => {
      const text = await (await fetch(`${url}/metrics`, bearer(TOKEN))).text()
      return text.includes('{verb="GET",status="401",error_type="unauthorized",refused_by="mcp-host"} 2')
    })
    const head = await fetch(`${url}/metrics`, { method: 'HEAD', ...bearer(TOKEN) })
    expect([head.status, await head.text()]).to.deep.equal([200, ''])
  })
})

describe('Metrics endpoint configuration errors', () => {
  it('fail startup with the missing setting if everyone or no one could read the metrics', async () => {
    expect(await failure({ host: '0.0.0.0' })).to.match(
      /plugins\.metrics\.host.*0\.0\.0\.0.*`token`.*`host`.*127\.0\.0\.1/,
    )
    expect(await failure({ path: '/metrics' })).to.match(/plugins\.metrics\.path/)
    expect(await failure({ token: 'short' })).to.match(/^.*plugins\.metrics\.token.*16/)
    expect(await failure({ path: '/metrics', port: 9000, token: TOKEN })).to.match(/`path`.*`port`.*`host`/)
  })

  it('refuse per-route options', async () => {
    const routes = { '/mcp': { toolsets: 'all', plugins: { metrics: { port: 0 } } } }
    const plugins = { 'transport-streamable': {}, metrics: { port: 0 } }
    const error = await startHost({ ...config, routes, plugins }).catch((thrown: Error) => thrown)
    expect(String(error)).to.match(/`metrics: false`/)
  })
})
