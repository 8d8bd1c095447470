// Tests `http.tls` in started processes: workers, certificate renewal, reload and check.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { runCli as runInProcess } from '../cli/in-process.ts'
import { runCli, stopAll } from '../cli/run-cli.ts'
import { startWorkers, workersConfig } from '../cli/start-workers.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { type Authority, certify, type Pair, removeTlsFolders } from '../support/certificates.ts'
import { eventually } from '../support/eventually.ts'
import { parseAnswer, readToEnd, requestBytes } from '../support/raw-http.ts'
import { modernRequest } from '../support/rpc.ts'
import { openSecure, writePair } from './tls-host.ts'

const CONFIG = workersConfig({
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

/** What the tool says, and whose certificate came with it, on one connection. */
async function ask(url: string): Promise<readonly [subject: string, text: string]> {
  const socket = await openSecure(url, authority)
  const { subject } = socket.getPeerCertificate()
  const { headers, body } = modernRequest('tools/call', { name: 'pid', arguments: {} })
  socket.write(requestBytes(url, body, { headers }))
  const { message } = parseAnswer(await readToEnd(socket))
  return [String(subject.CN), message.result.content[0].text]
}

describe('mcp-host start with http.tls', () => {
  it('prints https URLs, reports TLS errors in call and doctor, and renews the certificates of workers on SIGHUP', async () => {
    const { running, url, folder } = await startWorkers(2, CONFIG, {}, filesOf(pair))
    expect(new URL(url).protocol).to.equal('https:')
    for (const args of [
      ['call', url, 'pid'],
      ['doctor', url],
      ['login', url],
    ]) {
      const { code, stdout, stderr } = await runInProcess(args, folder)
      const output = `${stdout}${stderr}`
      expect(code, output).to.be.above(0)
      expect(output).to.include('is not trusted: ').and.include('NODE_EXTRA_CA_CERTS')
      expect(output).to.not.match(/start the host|check the URL/)
    }
    const { code, stdout } = await runInProcess(['doctor', url.replace('https:', 'http:')], folder)
    expect([code, stdout.includes(`try ${url}`)], stdout).to.deep.equal([1, true])
    const areAll = (subject: string) =>
      eventually(`every worker shows ${subject}`, async () => {
        const answers = await Promise.all(Array.from({ length: 8 }, () => ask(url)))
        return answers.every(([shown]) => shown === subject) && new Set(answers.map(([, pid]) => pid)).size === 2
      })
    await areAll('number 1')
    writePair(authority.sign({ subject: 'number 2' }), folder)
    running.child.kill('SIGHUP')
    await running.logged(/"msg":"Reloaded"/)
    await areAll('number 2')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })

  it('check fails for missing files and reports the line', async () => {
    const folder = await makeFolder({ 'mcp.config.mjs': CONFIG, ...filesOf(pair) })
    rmSync(join(folder, 'key.pem'))
    const { code, stderr } = await runCli(['check'], folder)
    expect(code).to.equal(2)
    expect(stderr).to.match(/mcp\.config\.mjs:\d+: http\.tls\.key: it is neither PEM/)
  })
})
