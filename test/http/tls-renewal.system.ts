// Tests certificate renewal by reload: a valid pair is served to new connections, an invalid one is rejected.
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { type Authority, certify, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { createTestLog, type TestConfig } from '../support/start-host.ts'
import { trust } from '../support/stream-exchange.ts'
import { CONFIG, FILES, openSecure, writePair } from './tls-host.ts'

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this, { subject: 'number 1' }))
  trust(authority.cert)
})
after(removeTlsFolders)

/** The subject of the certificate that a new connection gets. */
async function shownAt(url: string): Promise<string> {
  const socket = await openSecure(url, authority)
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

/** A listening host with `number 1`, and a reload of it with further TLS settings. */
async function start(more: Partial<TestConfig> = {}) {
  const folder = writePair(pair)
  const config = {
    server: { name: 'reloaded', version: '1.0.0' },
    secrets: ['a secret of this test, which is long enough'],
    ...CONFIG,
    ...more,
  }
  const withTls = (tls: object) => ({ ...config, http: { port: 0, tls: { ...FILES, ...tls } } })
  const log = createTestLog()
  const host = await createHost(withTls({}), { directory: folder, log })
  await host.listen()
  const reload = (tls = {}) =>
    host.reload({
      file: join(folder, 'config'),
      config: withTls(tls),
      locate: () => undefined,
      isInline: true as const,
    })
  return {
    url: host.url,
    folder,
    log,
    reload,
    [Symbol.asyncDispose]: async () => void (await host.close({ grace: 0 })),
  }
}

describe('Certificate renewal', () => {
  it('warns when a reload serves an expired certificate', async () => {
    await using host = await start()
    writePair(authority.sign({ days: [-9, -2] }), host.folder)
    await host.reload()
    const warnings = host.log.lines.filter(({ code, level }) => code === 'MH1303' && level === 'warn')
    expect(warnings.map(({ message }) => message).join()).to.match(/^http\.tls\.cert: \.\/cert\.pem expired on \d{4}-/)
  })

  it('serves the new certificate to new connections and keeps open streams', async () => {
    const puppet = createPuppet()
    await using host = await start({ toolsets: { all: [puppet.tool] } })
    const session = await openSession(host.url)
    const opening = session.call('puppet', { name: 'call' })
    const { ctx, finish } = await puppet.call('call')
    ctx.log('warning', 'before')
    const stream = await opening
    await nextMessage(stream)
    const idle = await openSecure(host.url, authority)
    for (const number of [2, 3]) {
      writePair(authority.sign({ subject: `number ${number}`, names: 'DNS:localhost,IP:127.0.0.1' }), host.folder)
      expect(await host.reload()).to.deep.include({ restart: [], taken: ['http.tls'] })
      expect(await shownAt(host.url)).to.equal(`number ${number}`)
    }
    ctx.log('warning', 'after')
    finish('done')
    expect((await nextMessage(stream)).params.data).to.equal('after')
    expect((await nextMessage(stream)).result.content[0].text).to.equal('done')
    idle.write('GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(String((await once(idle, 'data'))[0])).to.match(/^HTTP\/1\.1 200/)
  })

  it('keeps the old certificate if the files are inconsistent, truncated, empty or missing', async () => {
    await using host = await start()
    const { cert, key } = authority.sign({ subject: 'number 2' })
    const file = join(host.folder, 'cert.pem')
    const states: ReadonlyArray<readonly [change: () => void, expected: RegExp]> = [
      [() => writeFileSync(file, cert), /http\.tls\.key: the key and the certificate/],
      [() => writeFileSync(file, cert.slice(0, 200)), /http\.tls\.cert: the certificate cannot be read/],
      [() => writeFileSync(file, ''), /http\.tls\.cert: its file contains no PEM/],
      [() => rmSync(file), /http\.tls\.cert: .*ENOENT/],
    ]
    for (const [change, expected] of states) {
      change()
      expect(await rejectionOf(host.reload())).to.match(expected)
      expect(await shownAt(host.url)).to.equal('number 1')
    }
    writePair({ cert, key }, host.folder)
    await host.reload()
    expect(await shownAt(host.url)).to.equal('number 2')
  })

  it('follows a config with other files and names settings that require a restart', async () => {
    await using host = await start()
    writePair(authority.sign({ subject: 'elsewhere' }), join(host.folder, 'other'))
    expect(await host.reload()).to.deep.include({ restart: [], taken: [] })
    const other = { cert: './other/cert.pem', key: './other/key.pem' }
    expect(await host.reload(other)).to.deep.include({ restart: [], taken: ['http.tls'] })
    expect(await shownAt(host.url)).to.equal('elsewhere')
    const { restart } = await host.reload({ ...other, handshakeTimeout: '1s' })
    expect(restart).to.deep.equal(['http.tls.handshakeTimeout'])
  })
})
