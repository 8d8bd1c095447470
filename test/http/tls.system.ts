// Tests a host with HTTPS: handshakes and MCP over TLS.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { Agent, fetch as fetchOver } from 'undici'
import { type Authority, certify, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { trust } from '../support/stream-exchange.ts'
import { ask, CONFIG, call, handshakeFailures, startSecure } from './tls-host.ts'

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this))
  trust(authority.cert)
})
afterEach(stopHosts)
after(removeTlsFolders)

describe('Host with http.tls', () => {
  it('serves HTTPS, builds https URLs and identifies callers', async () => {
    const seen: string[] = []
    const { url, host } = await startSecure(pair, {
      configureSession: ({ ip }) => void seen.push(ip),
    })
    expect(url).to.match(/^https:\/\/127\.0\.0\.1:\d+$/)
    expect(host.routes.map(route => route.url)).to.deep.equal([url])
    const { status, message } = await call(url, { ca: authority.cert }, 'echo', { text: 'over TLS' })
    expect([status, message.result.content[0].text]).to.deep.equal([200, 'over TLS'])
    expect(seen).to.deep.equal(['127.0.0.1'])
  })

  it('accepts inline PEM and an encrypted key', async () => {
    const folder = (await startSecure(pair)).folder
    const locked = join(folder, 'locked.pem')
    const args = ['pkcs8', '-topk8', '-in', join(folder, 'key.pem'), '-out', locked, '-passout', 'pass:a secret']
    execFileSync('openssl', args, { stdio: 'pipe' })
    const tls = { cert: pair.cert, key: './locked.pem', passphrase: 'a secret' }
    const { url } = await startHost({ ...CONFIG, http: { port: 0, tls } }, folder)
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
  })

  it('sends the certificate chain to a client that trusts the root', async () => {
    const between = authority.authority('an intermediate')
    const { cert, key } = between.sign()
    const { url, log } = await startSecure({ cert: `${cert}${between.cert}`, key })
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
    expect(log.filter(({ path }) => String(path).startsWith('http.tls'))).to.deep.equal([])
  })

  it('keeps a session and streams a response', async () => {
    const puppet = createPuppet()
    const { url } = await startSecure(pair, { toolsets: { all: [puppet.tool] } })
    const session = await openSession(url)
    const opening = session.call('puppet', { name: 'streaming' })
    const { ctx, finish } = await puppet.call('streaming')
    ctx.log('warning', 'on the way')
    const stream = await opening
    finish('done')
    const messages = [await nextMessage(stream), await nextMessage(stream)]
    expect(messages.map(({ method, result }) => method ?? result.content[0].text)).to.deep.equal([
      'notifications/message',
      'done',
    ])
    expect((await session.end()).status).to.equal(204)
  })

  it('works with the official client', async () => {
    const { url } = await startSecure(pair)
    const dispatcher = new Agent({ connect: { ca: authority.cert } })
    const client = new Client({ name: 'official', version: '1.0.0' })
    const own = (input: string | URL, init?: RequestInit) =>
      fetchOver(String(input), { ...(init as object), dispatcher }) as unknown as Promise<Response>
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: own }))
    const { tools } = await client.listTools()
    const { content } = await client.callTool({ name: 'echo', arguments: { text: 'official' } })
    await client.close()
    await dispatcher.close()
    expect(tools.map(({ name }) => name)).to.deep.equal(['echo'])
    expect(content).to.deep.equal([{ type: 'text', text: 'official' }])
  })

  it('rejects TLS 1.1, and TLS 1.2 if minVersion requires 1.3', async () => {
    const [usual, strict] = [await startSecure(pair), await startSecure(pair, { tls: { minVersion: 'TLSv1.3' } })]
    const attempt = (url: string, version: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') => {
      const { hostname: host, port } = new URL(url)
      const ciphers = 'DEFAULT:@SECLEVEL=0'
      const socket = connect({
        host,
        port: Number(port),
        ca: authority.cert,
        minVersion: version,
        maxVersion: version,
        ciphers,
      })
      return once(socket, 'secureConnect').then(
        () => socket.destroy() && socket.getProtocol(),
        () => 'refused',
      )
    }
    const tried = [
      await attempt(usual.url, 'TLSv1.1'),
      await attempt(strict.url, 'TLSv1.2'),
      await attempt(usual.url, 'TLSv1.2'),
      await attempt(strict.url, 'TLSv1.3'),
    ]
    expect(tried.slice(0, 2)).to.deep.equal(['refused', 'refused'])
    expect(tried.slice(2)).to.not.include('refused')
    expect(handshakeFailures(usual.log)).to.deep.equal([{ level: 'debug', reason: 'ERR_SSL_UNSUPPORTED_PROTOCOL' }])
  })

  it('closes plain HTTP and invalid connections and logs the reason', async () => {
    const { url, log } = await startSecure(pair)
    const port = Number(new URL(url).port)
    const kinds = { http: 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', noise: Buffer.alloc(4_096, 0x7f), nothing: '' }
    for (const bytes of Object.values(kinds)) {
      const socket = connectPlain(port, '127.0.0.1').on('error', () => undefined)
      let read = ''
      socket.setEncoding('latin1').on('data', text => {
        read += text
      })
      if (bytes === '') socket.end()
      else socket.write(bytes)
      await once(socket, 'close')
      expect(read).to.not.include('HTTP')
    }
    const failures = handshakeFailures(log)
    expect(failures).to.deep.include.members([
      { level: 'debug', reason: 'ERR_SSL_HTTP_REQUEST' },
      { level: 'debug', reason: 'ECONNRESET' },
    ])
    expect(failures).to.have.lengthOf(3)
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
  })
})
