// Tests certificate renewal on a running host: valid files are loaded, invalid files ignored, connections kept.
import { once } from 'node:events'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../core/create-host.ts'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import {
  type Authority,
  certify,
  makeAuthority,
  type Pair,
  removeTlsFolders,
  tlsFolder,
} from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { createPuppet } from '../support/puppet-tool.ts'
import { nextMessage, openSession } from '../support/session-client.ts'
import { sideBySide } from '../support/side-by-side.ts'
import { createTestLog, type LogLine, startHost, stopHosts } from '../support/start-host.ts'
import { trust } from '../support/stream-exchange.ts'
import { ask, CONFIG, FILES, openSecure, startSecure, writePair } from './tls-host.ts'

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this, { subject: 'number 1' }))
  trust(authority.cert)
})
after(stopHosts)
after(removeTlsFolders)

/** Each with a host of its own, which looks for newer files every two seconds. */
const it = sideBySide()

/** Whose certificate a new connection is shown. */
async function shownAt(url: string): Promise<string> {
  const socket = await openSecure(url, authority)
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return String(subject.CN)
}

const isShown = (url: string, subject: string) =>
  eventually(
    `${subject} is shown`,
    () => shownAt(url),
    shown => shown === subject,
  )

const linesOf = (log: readonly LogLine[], text: RegExp) => log.filter(({ message }) => text.test(String(message)))
const taken = (log: readonly LogLine[]) => linesOf(log, /^took a new certificate/)
const kept = (log: readonly LogLine[]) => linesOf(log, /have changed and cannot be served/)

describe('Certificate renewal', () => {
  it('serves the new certificate to new connections and keeps open streams', async () => {
    const puppet = createPuppet()
    const { url, folder, log } = await startSecure(pair, { toolsets: { all: [puppet.tool] } })
    const session = await openSession(url)
    const streams = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const opening = session.call('puppet', { name: `call ${index}` })
        const { ctx, finish } = await puppet.call(`call ${index}`)
        ctx.log('warning', 'before')
        const stream = await opening
        await nextMessage(stream)
        return { stream, ctx, finish }
      }),
    )
    const idle = await openSecure(url, authority)
    for (const number of [2, 3]) {
      writePair(authority.sign({ subject: `number ${number}`, names: 'DNS:localhost,IP:127.0.0.1' }), folder)
      await isShown(url, `number ${number}`)
    }
    const texts = await Promise.all(
      streams.map(async ({ stream, ctx, finish }, index) => {
        ctx.log('warning', 'after')
        finish(`done ${index}`)
        return [(await nextMessage(stream)).params.data, (await nextMessage(stream)).result.content[0].text]
      }),
    )
    idle.write('GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    expect(String((await once(idle, 'data'))[0])).to.match(/^HTTP\/1\.1 (?:200|404)/)
    const whole = texts.filter(([text], index) => text === 'after' && texts[index]?.[1] === `done ${index}`).length
    expect(whole).to.equal(streams.length)
    expect(taken(log).map(({ subject }) => subject)).to.deep.equal(['CN=number 2', 'CN=number 3'])
    expect(taken(log)[0]).to.deep.include({ level: 'info', names: ['localhost', '127.0.0.1'] })
    expect(String(taken(log)[0]?.['ends'])).to.match(/^\d{4}-\d\d-\d\dT/)
  })

  /** Brings the files into these states, none of which can be served, and then into one that can. */
  async function expectKept(
    states: ReadonlyArray<readonly [change: (next: Pair, cert: string) => void, told: RegExp]>,
  ) {
    const { url, folder, log } = await startSecure(pair)
    const next = authority.sign({ subject: 'number 2' })
    for (const [index, [change, expected]] of states.entries()) {
      change(next, join(folder, 'cert.pem'))
      const lines = await eventually(
        'it is told',
        () => kept(log),
        ({ length }) => length === index + 1,
      )
      expect(lines[index]).to.deep.include({ level: 'warn', subject: 'CN=number 1' })
      expect(lines[index]?.['problem']).to.match(expected)
      expect(await shownAt(url)).to.equal('number 1')
    }
    writePair(next, folder)
    await isShown(url, 'number 2')
    expect([kept(log).length, taken(log).length]).to.deep.equal([states.length, 1])
  }

  it('keeps the old certificate while files are inconsistent or truncated, with one log line', () =>
    expectKept([
      [({ cert }, file) => writeFileSync(file, cert), /the key does not fit the certificate/],
      [({ cert }, file) => writeFileSync(file, cert.slice(0, 200)), /holds no certificate/],
    ]))

  it('keeps the old certificate if the new one is expired or not yet valid', () =>
    expectKept([
      [(_, file) => writePair(authority.sign({ days: [-9, -2] }), dirname(file)), /the certificate has ended, on/],
      [(_, file) => writePair(authority.sign({ days: [2, 9] }), dirname(file)), /the certificate holds only from/],
    ]))

  it('keeps the old certificate while files are empty or missing', () =>
    expectKept([
      [(_, file) => writeFileSync(file, ''), /it is empty/],
      [(_, file) => rmSync(file), /there is no such file/],
    ]))

  it('follows swapped symlink folders as in Kubernetes volumes', async () => {
    const folder = tlsFolder()
    const swap = (one: Pair, name: string) => {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, 'tls.crt'), one.cert)
      writeFileSync(join(folder, name, 'tls.key'), one.key)
      symlinkSync(name, join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
    }
    swap(pair, '..1')
    for (const name of ['tls.crt', 'tls.key']) symlinkSync(join('..data', name), join(folder, name))
    const tls = { cert: './tls.crt', key: './tls.key' }
    const { url, log } = await startHost({ ...CONFIG, http: { port: 0, tls } }, folder)
    expect(await shownAt(url)).to.equal('number 1')
    swap(authority.sign({ subject: 'number 2' }), '..2')
    rmSync(join(folder, '..1'), { recursive: true })
    await isShown(url, 'number 2')
    expect(kept(log)).to.deep.equal([])
  })

  it('is applied immediately by a reload, which names settings that require a restart', async () => {
    const folder = writePair(pair)
    writePair(authority.sign({ subject: 'elsewhere' }), join(folder, 'other'))
    const config = {
      server: { name: 'reloaded', version: '1.0.0' },
      secrets: ['a secret of this test, which is long enough'],
      ...CONFIG,
    }
    const withTls = (tls: object) => ({ ...config, http: { port: 0, tls: { ...FILES, ...tls } } })
    const loaded = (tls: object) => ({
      file: join(folder, 'config'),
      config: withTls(tls),
      locate: () => undefined,
      isInHand: true as const,
    })
    const log = createTestLog()
    const host = await createHost(withTls({}), { directory: folder, log })
    await host.listen()
    try {
      expect(await host.reload(loaded({}))).to.deep.include({ restart: [], taken: [] })
      writePair(authority.sign({ subject: 'number 2' }), folder)
      expect(await host.reload(loaded({}))).to.deep.include({ restart: [], taken: ['http.tls'] })
      expect(await shownAt(host.url)).to.equal('number 2')
      const other = { cert: './other/cert.pem', key: './other/key.pem' }
      expect(await host.reload(loaded(other))).to.deep.include({ restart: [], taken: ['http.tls'] })
      expect(await shownAt(host.url)).to.equal('elsewhere')
      // What is followed now is what the newer config names.
      writePair(authority.sign({ subject: 'number 3' }), join(folder, 'other'))
      await isShown(host.url, 'number 3')
      for (const more of [{ clientCa: authority.cert }, { handshakeTimeout: '1s' }]) {
        const { restart } = await host.reload(loaded({ ...other, ...more }))
        expect(restart).to.deep.equal([`http.tls.${Object.keys(more)[0]}`])
      }
      expect(await rejectionOf(host.reload(loaded({ ...other, key: './key.pem' })))).to.match(/does not fit/)
      expect(await shownAt(host.url)).to.equal('number 3')
    } finally {
      await host.close({ grace: 0 })
    }
  })
})

describe('Client CA renewal', () => {
  it('is applied while certificate and key mismatch, and rejects clients of the old CA', async () => {
    const [first, second, third] = ['one', 'two', 'three'].map(name => makeAuthority(`clients ${name}`)) as [
      Authority,
      Authority,
      Authority,
    ]
    const [one, two, three] = [first, second, third].map(each => each.sign({ names: '' })) as unknown as [
      Pair,
      Pair,
      Pair,
    ]
    const folder = writePair(pair)
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
    write('clients.pem', first.cert)
    const tls = { ...FILES, clientCa: './clients.pem' }
    const { url, log } = await startHost({ ...CONFIG, http: { port: 0, tls } }, folder)
    const isIn = (client: Pair) =>
      ask(`${url}/livez`, { ca: authority.cert, ...client }).then(
        () => true,
        () => false,
      )
    const areIn = async () => [await isIn(one), await isIn(two), await isIn(three)]
    const until = (...wanted: boolean[]) =>
      eventually('the right ones are let in', areIn, found => `${found}` === `${wanted}`)
    await until(true, false, false)
    const next = authority.sign({ subject: 'number 2' })
    write('cert.pem', next.cert)
    await eventually('it is told', () => kept(log).length === 1)
    write('clients.pem', second.cert)
    await until(false, true, false)
    rmSync(join(folder, 'cert.pem'))
    write('clients.pem', third.cert)
    await until(false, false, true)
    // One that is broken is not taken, and that is told.
    write('clients.pem', third.cert.slice(0, 200))
    const told = () => kept(log).some(({ problem }) => String(problem).includes('http.tls.clientCa'))
    await eventually('the broken one is told', told)
    expect(await areIn()).to.deep.equal([false, false, true])
    const lines = linesOf(log, /^took new authorities of clients/)
    expect(lines.map(({ level, subject }) => `${level} ${subject}`)).to.deep.equal([
      'info CN=number 1',
      'info CN=number 1',
    ])
    write('clients.pem', second.cert)
    writePair(next, folder)
    await until(false, true, false)
    await eventually('the pair is taken', () => taken(log).length === 1)
    expect(taken(log)[0]).to.include({ subject: 'CN=number 2' })
  })
})
