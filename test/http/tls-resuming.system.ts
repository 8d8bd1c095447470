// Tests TLS session resumption, which is disabled if the host requires client certificates.
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { expect } from 'chai'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { type Authority, makeAuthority, needsOpenssl, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { ask, CONFIG, FILES, openSecure, startSecure, writePair } from './tls-host.ts'

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const
const SECOND = 1 / (24 * 60 * 60)

let authority: Authority
let clients: Authority
let pair: Pair

before(function () {
  needsOpenssl(this)
  authority = makeAuthority()
  clients = makeAuthority('clients')
  pair = authority.sign({ subject: 'number 1' })
})
afterEach(stopHosts)
after(removeTlsFolders)

/** A session of a connection that was answered, to come back with: the newest, where the server gave several. */
async function sessionAt(url: string, from: ConnectionOptions): Promise<Buffer> {
  const socket = connect({ ...from, host: '127.0.0.1', port: Number(new URL(url).port), ca: authority.cert })
  let session: Buffer | undefined
  socket.on('session', newer => {
    session = newer
  })
  socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [answer] = await once(socket, 'data')
  expect(String(answer)).to.match(/^HTTP\/1\.1 200/)
  session ??= socket.getSession()
  socket.destroy()
  if (!session) throw new Error('there is no session')
  return session
}

const isResumed = (socket: TLSSocket) => {
  const isReused = socket.isSessionReused()
  socket.destroy()
  return isReused
}

const startAsking = () =>
  startSecure(pair, { tls: { clientCa: clients.cert } }).then(({ url, log }) => ({ url, log, ca: authority.cert }))

describe('TLS session resumption', () => {
  it('works without client certificates', async () => {
    const { url } = await startSecure(pair)
    for (const maxVersion of VERSIONS) {
      const session = await sessionAt(url, { maxVersion })
      const socket = await openSecure(url, authority, { maxVersion, session })
      expect(isResumed(socket), maxVersion).to.equal(true)
    }
  })

  it('is disabled with client certificates, which are verified on each connection', async () => {
    const { url, ca } = await startAsking()
    const one = clients.sign({ names: '', subject: 'a client' })
    for (const maxVersion of VERSIONS) {
      for (let round = 0; round < 5; round++) {
        const session = await sessionAt(url, { ...one, maxVersion })
        expect(await rejectionOf(ask(`${url}/livez`, { ca, maxVersion, session }))).to.be.instanceOf(Error)
        const socket = await openSecure(url, authority, { ...one, maxVersion, session })
        expect(isResumed(socket), maxVersion).to.equal(false)
      }
    }
  })

  it('does not admit a client whose certificate has expired', async () => {
    const { url, ca } = await startAsking()
    const short = clients.sign({ names: '', subject: 'a client for seconds', days: [-1, 6 * SECOND] })
    const sessions = await Promise.all(
      VERSIONS.map(async maxVersion => ({ maxVersion, session: await sessionAt(url, { ...short, maxVersion }) })),
    )
    const isEnded = () =>
      ask(`${url}/livez`, { ca, ...short }).then(
        () => false,
        () => true,
      )
    await eventually('the certificate has ended', isEnded)
    const tries = sessions.flatMap(session => [session, { ...session, ...short }])
    for (const from of tries) {
      expect(await rejectionOf(ask(`${url}/livez`, { ca, ...from })), from.maxVersion).to.be.instanceOf(Error)
    }
  })

  it('does not admit a client of a replaced client CA', async () => {
    const second = makeAuthority('other clients')
    const one = clients.sign({ names: '', subject: 'a client' })
    const two = second.sign({ names: '', subject: 'another' })
    const folder = writePair(pair)
    writeFileSync(join(folder, 'clients.pem'), clients.cert)
    const tls = { ...FILES, clientCa: './clients.pem' }
    const { url, log } = await startHost({ ...CONFIG, http: { port: 0, tls } }, folder)
    const ca = authority.cert
    const sessions = await Promise.all(
      VERSIONS.map(async maxVersion => ({ maxVersion, session: await sessionAt(url, { ...one, maxVersion }) })),
    )
    writeFileSync(join(folder, 'clients.pem'), second.cert)
    const isIn = () =>
      ask(`${url}/livez`, { ca, ...two }).then(
        ({ status }) => status === 200,
        () => false,
      )
    await eventually('the second client is let in', isIn)
    for (const { maxVersion, session } of sessions) {
      for (const from of [one, { session }, { ...one, session }]) {
        expect(await rejectionOf(ask(`${url}/livez`, { ca, ...from, maxVersion })), maxVersion).to.be.instanceOf(Error)
      }
      // What is served now resumes nothing either.
      const newer = await sessionAt(url, { ...two, maxVersion })
      const socket = await openSecure(url, authority, { ...two, maxVersion, session: newer })
      expect(isResumed(socket), maxVersion).to.equal(false)
      expect(await rejectionOf(ask(`${url}/livez`, { ca, maxVersion, session: newer }))).to.be.instanceOf(Error)
    }
    expect(log.filter(({ message }) => message === 'took a new certificate')).to.have.lengthOf(1)
  })
})
