// Tests a host with HTTPS: handshakes, client certificates, startup warnings and MCP over TLS.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect as connectPlain } from 'node:net'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { Agent, fetch as fetchOver } from 'undici'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { type Authority, certify, makeAuthority, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { trust } from '../support/stream-exchange.ts'
import { ask, CONFIG, call, handshakeFailures, openSecure, startSecure } from './tls-host.ts'

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
    expect(handshakeFailures(usual.log)).to.deep.equal([{ level: 'debug', reason: 'version' }])
  })

  it('closes plain HTTP and invalid connections with one log line per kind', async () => {
    const { url, log } = await startSecure(pair)
    const port = Number(new URL(url).port)
    const kinds = { http: 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n', noise: Buffer.alloc(4_096, 0x7f), nothing: '' }
    let answered = 0
    for (const bytes of Object.values(kinds)) {
      for (let time = 0; time < 50; time++) {
        const socket = connectPlain(port, '127.0.0.1').on('error', () => undefined)
        let read = ''
        socket.setEncoding('latin1').on('data', text => {
          read += text
        })
        if (bytes === '') socket.end()
        else socket.write(bytes)
        await once(socket, 'close')
        if (read.includes('HTTP')) answered++
      }
    }
    const reasons = handshakeFailures(log)
    expect(answered).to.equal(0)
    expect(reasons).to.deep.include.members([
      { level: 'debug', reason: 'plain_http' },
      { level: 'debug', reason: 'gone' },
    ])
    expect(reasons.length).to.be.within(2, 4)
    expect((await ask(`${url}/health`, { ca: authority.cert })).status).to.equal(200)
  })

  it('warns about an http publicUrl and unmatched certificate names', async () => {
    const { log } = await startSecure(authority.sign({ names: 'DNS:mcp.acme.example' }), {
      http: { publicUrl: 'http://other.example' },
    })
    const warnings = log.filter(({ level, path }) => level === 'warn' && path !== undefined)
    expect(warnings.map(({ path }) => path)).to.deep.equal(['http.tls.cert', 'http.publicUrl'])
    expect(warnings.map(({ message }) => message).join()).to.match(/mcp\.acme\.example.*other\.example/s)
  })
})

describe('Host with http.tls.clientCa', () => {
  it('accepts only clients with a certificate of that CA', async () => {
    const clients = makeAuthority('clients')
    const others = makeAuthority('others')
    const { url, log } = await startSecure(pair, { tls: { clientCa: clients.cert } })
    const ca = authority.cert
    const right = clients.sign({ names: '', subject: 'a client' })
    const wrong = [
      {},
      others.sign({ names: '', subject: 'a stranger' }),
      makeAuthority('clients').sign({ names: '', subject: 'a client' }),
      clients.sign({ names: '', subject: 'of old', days: [-10, -1] }),
    ]
    expect((await ask(`${url}/health`, { ca, ...right })).status).to.equal(200)
    for (const from of wrong) {
      for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
        const error = await rejectionOf(ask(`${url}/health`, { ca, maxVersion, ...from }))
        expect(error)
          .to.have.property('code')
          .that.matches(/ECONNRESET|EPIPE|EPROTO|SSL/)
      }
    }
    await eventually('a line of it', () => handshakeFailures(log).length)
    expect(handshakeFailures(log)).to.deep.equal([{ level: 'debug', reason: 'client_certificate' }])
    const socket = await openSecure(url, authority, right)
    expect(socket.authorized).to.equal(true)
    socket.destroy()
  })
})
