// Tests `http.tls` in started processes: workers, certificate renewal, reload and check.
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { expect } from 'chai'
import { crewConfig, linesOf, startCrew } from '../cli/crew.ts'
import { startCli, stopAll } from '../cli/run-cli.ts'
import { removeFolders } from '../config/folder.ts'
import { type Authority, certify, makeAuthority, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { parseAnswer, readToEnd, requestBytes } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { ask as askOnce, openSecure, writePair } from './tls-host.ts'

const CONFIG = crewConfig({
  http: "{ port: 0, keepAliveTimeout: '1s', tls: { cert: './cert.pem', key: './key.pem' } }",
})

let authority: Authority
let pair: Pair

before(function () {
  ;({ authority, pair } = certify(this, { subject: 'number 1' }))
})
after(stopAll)
after(removeFolders)
after(removeTlsFolders)

const filesOf = ({ cert, key }: Pair) => ({ 'cert.pem': cert, 'key.pem': key })

type From = Pick<ConnectionOptions, 'cert' | 'key' | 'maxVersion' | 'session'>

/** What the tool says, and whose certificate came with it, on one connection. */
async function ask(url: string, from: From = {}): Promise<readonly [subject: string, text: string]> {
  const socket = await openSecure(url, authority, from)
  const { subject } = socket.getPeerCertificate()
  const { headers, body } = modernRequest('tools/call', { name: 'pid', arguments: {} })
  socket.write(requestBytes(url, body, { headers }))
  const { message } = parseAnswer(await readToEnd(socket))
  return [String(subject.CN), message.result.content[0].text]
}

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const

/** Sessions to come back with, of connections that were answered: with two workers, of both. */
async function sessionsOf(url: string, client: Pair) {
  const sessions: From[] = []
  for (const maxVersion of [...VERSIONS, ...VERSIONS, ...VERSIONS]) {
    const socket = await openSecure(url, authority, { ...client, maxVersion })
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await once(socket, 'data')
    const session = socket.getSession()
    socket.destroy()
    if (!session) throw new Error('there is no session')
    sessions.push({ maxVersion, session })
  }
  return sessions
}

/** How many of these got no answer of any kind. */
async function refusedOf(url: string, tries: readonly From[]): Promise<number> {
  let refused = 0
  for (const from of tries) {
    const isIn = await askOnce(url, { ca: authority.cert, ...from }).then(
      () => true,
      () => false,
    )
    if (!isIn) refused++
  }
  return refused
}

describe('mcp-host start with http.tls', function () {
  this.timeout(60_000)

  it('serves the renewed certificate in every worker, automatically and after a reload', async () => {
    const { running, url, folder } = await startCrew(2, CONFIG, {}, filesOf(pair))
    expect(url).to.match(/^https:/)
    const areAll = (subject: string) =>
      eventually(`every worker shows ${subject}`, async () => {
        const answers = await Promise.all(Array.from({ length: 8 }, () => ask(url)))
        return answers.every(([shown]) => shown === subject) && new Set(answers.map(([, pid]) => pid)).size === 2
      })
    await areAll('number 1')
    writePair(authority.sign({ subject: 'number 2' }), folder)
    await areAll('number 2')
    writePair(authority.sign({ subject: 'number 3' }), folder)
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"reloaded"/)
    await areAll('number 3')
    running.child.kill('SIGTERM')
    const { code, stderr } = await running.ended
    const took = linesOf(stderr).filter(({ msg }) => msg === 'took a new certificate')
    expect(took.filter(({ subject }) => subject === 'CN=number 2')).to.have.lengthOf(2)
    expect(new Set(took.map(({ pid }) => pid)).size).to.be.within(2, 4)
    expect(code).to.equal(0)
  })

  it('rejects certificates and TLS sessions of a replaced client CA, in new workers and after SIGHUP', async () => {
    const [first, second] = [makeAuthority('clients'), makeAuthority('other clients')]
    const [one, two] = [first.sign({ names: '' }), second.sign({ names: '' })]
    // Node gives the ticket keys of the first worker of a port to those that come later: one that was asked for by its number.
    const config = CONFIG.replace("'./key.pem'", "'./key.pem', clientCa: './clients.pem'").replace(
      'port: 0',
      `port: ${await freePort()}`,
    )
    const files = { ...filesOf(pair), 'clients.pem': first.cert }
    const { running, url, folder, workers } = await startCrew(2, config, {}, files)
    const sessions = await sessionsOf(url, one)
    const tries = [...sessions, ...sessions.map(session => ({ ...one, ...session })), one]
    writeFileSync(join(folder, 'clients.pem'), second.cert)
    await eventually(
      'both workers took it',
      () => refusedOf(url, [one, one, one, one]),
      count => count === 4,
    )
    const counts = [await refusedOf(url, tries)]
    process.kill(workers[0] ?? 0, 'SIGKILL')
    // What is given to the one that dies is reset.
    const pidOf = () =>
      ask(url, two).then(
        ([, pid]) => Number(pid),
        () => undefined,
      )
    await eventually('a new worker answers', pidOf, pid => pid !== undefined && !workers.includes(pid))
    counts.push(await refusedOf(url, tries))
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"reloaded"/)
    counts.push(await refusedOf(url, tries))
    expect(counts).to.deep.equal([tries.length, tries.length, tries.length])
    expect(await refusedOf(url, [two, two, two, two])).to.equal(0)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })

  it('prints https URLs and loads a renewed certificate on SIGHUP', async () => {
    const { running, url, folder } = await startCrew(1, CONFIG, {}, filesOf(pair))
    const alone = startCli(['start'], folder)
    const own = await alone.listening()
    await alone.printed(/^curl -s https:\/\/127\.0\.0\.1:\d+/m)
    expect([new URL(url).protocol, new URL(own).protocol]).to.deep.equal(['https:', 'https:'])
    writePair(authority.sign({ subject: 'number 2' }), folder)
    alone.child.kill('SIGHUP')
    await alone.logged(/"msg":"(?:reloaded|took a new certificate)/)
    expect((await ask(own))[0]).to.equal('number 2')
    for (const { child, ended } of [running, alone]) {
      child.kill('SIGTERM')
      expect((await ended).code).to.equal(0)
    }
  })

  it('stops startup for missing files, which check reports with the line', async () => {
    const { running, folder } = await startCrew(1, CONFIG, {}, filesOf(pair))
    running.child.kill('SIGTERM')
    await running.ended
    rmSync(join(folder, 'key.pem'))
    for (const verb of ['start', 'check']) {
      const { code, stderr } = await startCli([verb], folder).ended
      expect([verb, code]).to.deep.equal([verb, 2])
      expect(stderr).to.match(/mcp\.config\.mjs:\d+: http\.tls\.key: \.\/key\.pem.*PEM/)
    }
  })

  it('lets call and doctor distinguish TLS errors from an unreachable host', async () => {
    const { url, folder } = await startCrew(1, CONFIG, {}, filesOf(pair))
    for (const args of [
      ['call', url, 'pid'],
      ['doctor', url],
      ['login', url],
    ]) {
      const { code, stdout, stderr } = await startCli(args, folder).ended
      const said = `${stdout}${stderr}`
      expect(code, said).to.be.above(0)
      expect(said).to.include('is not trusted here: ').and.include('NODE_EXTRA_CA_CERTS=ca.pem')
      expect(said).to.not.match(/start the host|check the address/)
    }
    const plain = url.replace('https:', 'http:')
    const { code, stdout } = await startCli(['doctor', plain], folder).ended
    expect([code, stdout.includes(`if the port speaks TLS, try ${url}`)], stdout).to.deep.equal([1, true])
  })
})
