// Tests the examples of docs/plugins.md in a running host.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import type { PluginFactory } from '../../core/kernel/define-plugin.ts'
import { hello } from '../fixtures/plugins.ts'
import { eventually } from '../support/eventually.ts'
import { importSources } from '../support/import-sources.ts'
import { modern } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const page = readFileSync(new URL('../../docs/plugins.md', import.meta.url), 'utf8')
const folder = mkdtempSync(join(import.meta.dirname, 'blocks-'))

/** The plugin that an example of the page exports. */
async function example(name: string): Promise<PluginFactory<Record<string, unknown>>> {
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(([, text = '']) => text)
  const text = blocks.find(block => block.includes(`export const ${name} = `))
  if (text === undefined) throw new Error(`the page has no example ${name}`)
  const file = join(folder, `${name}.ts`)
  writeFileSync(file, importSources(text))
  const exported: Record<string, PluginFactory<Record<string, unknown>>> = await import(pathToFileURL(file).href)
  const found = exported[name]
  if (!found) throw new Error(`the example does not export ${name}`)
  return found
}

const start = async (name: string, options = {}) =>
  startHost({
    toolsets: { all: [hello] },
    routes: { '/': { toolsets: 'all' } },
    plugins: { 'transport-streamable': {}, example: (await example(name))(options) },
  })

after(stopHosts)
after(() => rmSync(folder, { recursive: true, force: true }))

const call = (url: string) => modern(url, 'tools/call', { name: 'hello' })

describe('Examples of docs/plugins.md', () => {
  it('addressLimit rejects requests over the rate limit', async () => {
    const { url } = await start('addressLimit', { perMinute: 1 })
    expect([(await call(url)).status, (await call(url)).status]).to.deep.equal([200, 429])
  })

  it('accessLog writes one line per request', async () => {
    const { url, log } = await start('accessLog')
    await call(url)
    await (await fetch(`${url}/nowhere`)).text()
    const lines = await eventually(
      'a line for each request',
      () => log.filter(({ message }) => message === 'request'),
      found => found.length >= 2,
    )
    expect(lines.map(({ method, path, route, status, whole }) => [method, path, route, status, whole])).to.deep.equal([
      ['POST', '/', '/', 200, true],
      ['GET', '/nowhere', undefined, 404, true],
    ])
  })

  it('ledger writes one line per call', async () => {
    const file = join(folder, 'ledger.log')
    const { url } = await start('ledger', { file })
    await call(url)
    await modern(url, 'tools/call', { name: 'unknown' })
    const written = await eventually(
      'a line for each call',
      () => (existsSync(file) ? readFileSync(file, 'utf8') : ''),
      text => text.split('\n').length > 2,
    )
    const told = written
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
      .map(({ method, name, outcome, kind }) => [method, name, outcome, kind])
    expect(told).to.deep.equal([
      ['tools/call', 'hello', 'ok', undefined],
      ['tools/call', '_OTHER', 'error', 'invalidParams'],
    ])
  })

  it('feedback accepts a form', async () => {
    const { url } = await start('feedback')
    const send = (body: URLSearchParams | string) => fetch(`${url}/feedback`, { method: 'POST', body })
    expect(await (await send(new URLSearchParams({ text: 'good' }))).text()).to.equal('Thank you.')
    expect((await send(new URLSearchParams({ texts: 'good' }))).status).to.equal(400)
    expect((await send('text=good')).status).to.equal(415)
  })

  it('apiKeys enforces the authorize of a route', async () => {
    const { url } = await startHost({
      toolsets: { all: [hello] },
      routes: { '/': { toolsets: 'all', authorize: true } },
      plugins: { 'transport-streamable': {}, example: (await example('apiKeys'))({}) },
    })
    const refused = await fetch(url, { method: 'POST' })
    expect([refused.status, refused.headers.get('WWW-Authenticate')]).to.deep.equal([401, 'ApiKey realm="acme"'])
    const accepted = await modern(
      url,
      'tools/call',
      { name: 'hello' },
      { headers: { 'X-API-Key': 'a-long-random-key' } },
    )
    expect(accepted.status).to.equal(200)
  })

  it('jobs runs tools normally for clients of older versions', async () => {
    const { url } = await start('jobs')
    const capabilities = { extensions: { 'com.example/jobs': {} } }
    const session = await openSession(url, { capabilities })
    expect((await session.request('tools/call', { name: 'hello' })).message.result.content).to.be.an('array')
  })

  it('admin serves a Koa app to callers with the token', async () => {
    const token = 'a-token-of-32-characters-or-more'
    const { url } = await start('admin', { token })
    const get = (path: string, headers = {}) => fetch(`${url}${path}`, { headers })
    expect((await get('/admin')).status).to.equal(401)
    expect((await get('/admin', { Authorization: 'Bearer wrong' })).status).to.equal(401)
    const headers = { Authorization: `Bearer ${token}` }
    expect(await (await get('/admin', headers)).text()).to.equal('test-host is running')
    expect((await get('/admin/again', headers)).status).to.equal(404)
  })
})
