// Access to health details by caller address, token and `details` option.
import { networkInterfaces } from 'node:os'
import { expect } from 'chai'
import type { BuiltInOptions } from '../../../core/config/define-config.ts'
import { hello, plugin, withPlugins } from '../../fixtures/plugins.ts'
import { type HeadOptions, requestHead, sendRaw } from '../../support/raw-http.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { startIssuer, stopIssuers } from '../../support/test-issuer.ts'

afterEach(async () => {
  await stopHosts()
  await stopIssuers()
})

const TOKEN = 'a-token-of-the-operator'
const PAGES = ['/readyz', '/health']
const AWAY = 'redis://10.9.8.7:6379 does not answer'

/** Everything that a caller who may not know must not read. */
const SECRETS = ['inventory', 'warehouse', '10.9.8.7', 'redis', 'test-host', '1.2.3', 'issuer', 'accepting', 'checks']

const checks = plugin(host => {
  host.readiness('redis', () => AWAY)
  host.readiness('keys of https://issuer.example', () => false)
})

type Options = NonNullable<BuiltInOptions['health']>

async function start(health: Options = {}, http: object = {}) {
  const routes = { '/inventory': { toolsets: 'warehouse' } }
  const plugins = { 'transport-streamable': {}, checks, health }
  const { url } = await startHost({ toolsets: { warehouse: [hello] }, routes, plugins, http })
  return url
}

/** Whether a caller with these headers is told details: by all pages, or by none, down to the last byte. */
async function isTold(url: string, headers: HeadOptions['headers'] = {}): Promise<boolean> {
  const told: boolean[] = []
  for (const path of PAGES) {
    const { status, message, text } = await sendRaw(url, requestHead(url, { method: 'GET', path, headers }))
    expect(status).to.equal(503)
    const isDetailed = message.reasons?.redis === AWAY
    if (isDetailed) expect(message.checks).to.include({ 'keys of https://issuer.example': false })
    else {
      expect(message).to.deep.equal({ status: 'not ready' })
      for (const secret of SECRETS) expect(text.toLowerCase(), secret).to.not.include(secret)
    }
    if (isDetailed && path === '/health') {
      expect(message.routes).to.deep.equal([{ path: '/inventory', toolsets: ['warehouse'] }])
      expect(message.server).to.deep.equal({ name: 'test-host', version: '1.2.3' })
    }
    told.push(isDetailed)
  }
  expect(new Set(told).size, 'all pages alike').to.equal(1)
  return told[0] ?? false
}

const bearer = (token: string, scheme = 'Bearer') => ({ Authorization: `${scheme} ${token}` })
const FORWARDED = { 'X-Forwarded-For': '203.0.113.9' }

describe('health: details', () => {
  it('are shown to direct loopback requests with a local host name', async () => {
    const url = await start()
    const { port } = new URL(url)
    for (const name of [`127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`, '127.1.2.3']) {
      expect(await isTold(url, { Host: name }), name).to.equal(true)
    }
    // A page of a foreign name that resolves to this machine, or a proxy that passes its own on.
    for (const name of ['evil.example', `evil.example:${port}`, 'mcp.acme.example', 'localhost.evil.example', '']) {
      expect(await isTold(url, { Host: name }), name).to.equal(false)
    }
    const proxied = ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'Forwarded', 'Via', 'X-Real-IP']
    for (const name of proxied) expect(await isTold(url, { [name]: '127.0.0.1' }), name).to.equal(false)
  })

  it('are hidden from requests to another local IP address', async function () {
    const [other] = Object.values(networkInterfaces()).flatMap(list =>
      (list ?? []).filter(({ internal, family }) => !internal && family === 'IPv4'),
    )
    if (!other) return this.skip()
    const url = await start({}, { host: '0.0.0.0' })
    const { port } = new URL(url)
    const outside = `http://${other.address}:${port}`
    expect(await isTold(outside)).to.equal(false)
    expect(await isTold(outside, { Host: `127.0.0.1:${port}` })).to.equal(false)
    expect(await isTold(url)).to.equal(true)
  })

  it('are shown to requests with the token, from any address', async () => {
    const url = await start({ token: TOKEN })
    for (const scheme of ['Bearer', 'bearer']) {
      expect(await isTold(url, { ...FORWARDED, ...bearer(TOKEN, scheme) }), scheme).to.equal(true)
    }
    const wrong = [`${TOKEN}x`, TOKEN.slice(1), TOKEN.toUpperCase(), 'x', '', `${TOKEN} ${TOKEN}`, 'undefined']
    for (const token of wrong) expect(await isTold(url, { ...FORWARDED, ...bearer(token) }), token).to.equal(false)
    expect(await isTold(url, { ...FORWARDED, ...bearer(TOKEN, 'Basic') })).to.equal(false)
    expect(await isTold(url, { ...FORWARDED, Authorization: TOKEN })).to.equal(false)
    expect(await isTold(url, bearer('wrong')), 'a wrong one takes nothing away').to.equal(true)
  })

  it('require a token value if no token is configured', async () => {
    const url = await start()
    for (const token of [TOKEN, '', 'undefined', 'null']) {
      expect(await isTold(url, { ...FORWARDED, ...bearer(token) }), token).to.equal(false)
    }
  })

  it('are shown to everyone or to token holders only, as configured', async () => {
    const open = await start({ details: 'anyone' })
    expect([await isTold(open), await isTold(open, FORWARDED)]).to.deep.equal([true, true])
    const closed = await start({ details: 'nobody' })
    expect([await isTold(closed), await isTold(closed, bearer(TOKEN))]).to.deep.equal([false, false])
    const keyed = await start({ details: 'nobody', token: TOKEN })
    expect([await isTold(keyed), await isTold(keyed, bearer(TOKEN))]).to.deep.equal([false, true])
  })

  it('require the token behind an unconfigured proxy', async () => {
    const publicUrl = 'https://mcp.acme.example'
    const hidden = await start({ token: TOKEN }, { publicUrl })
    expect([await isTold(hidden), await isTold(hidden, bearer(TOKEN))]).to.deep.equal([false, true])
    const known = await start({}, { publicUrl, trustProxy: 1 })
    expect([await isTold(known), await isTold(known, FORWARDED)]).to.deep.equal([true, false])
  })

  it('include the issuer URL, which others do not see', async () => {
    const issuer = await startIssuer()
    issuer.mood = 'broken'
    const plugins = { 'auth-jwt': { authority: issuer.url, audience: 'https://mcp.acme.example' }, health: {} }
    const { url } = await startHost(withPlugins(plugins))
    const name = `auth-jwt: keys of ${issuer.url}`
    const local = await (await fetch(`${url}/readyz`)).json()
    expect(local)
      .to.have.property('reasons')
      .that.has.property(name, 'the keys of the issuer cannot be fetched; see the log')
    const foreign = await fetch(`${url}/readyz`, { headers: FORWARDED })
    expect([foreign.status, await foreign.text()]).to.deep.equal([503, '{"status":"not ready"}'])
  })
})
