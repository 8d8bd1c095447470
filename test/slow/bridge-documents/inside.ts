// Runs in a network namespace, started by bridge-documents.slow.ts: real clients with the URL of a metadata document as
// client id.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { startFakeBrowser, stopFakeBrowsers } from '../../cli/fake-browser.ts'
import { runCli, stopAll } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'
import { Person, stopLandings } from '../../plugins/auth-bridge/browser-user.ts'
import { APPLICATIONS, type Application } from '../../plugins/auth-bridge/real-clients.ts'
import { startWithScopes } from '../../plugins/auth-bridge/scoped-bridge.ts'
import type { StartedBridge } from '../../support/bridge.ts'
import { stopIdentityProviders } from '../../support/identity-provider.ts'
import { stopHosts } from '../../support/start-host.ts'
import { ADDRESS } from './address.ts'

const folder = process.env['DOCUMENTS_FOLDER'] ?? ''

describe('auth-bridge: clients with metadata documents', () => {
  const servers: Server[] = []
  let document: string
  let bridge: StartedBridge

  /** Serves the document of a client at this address of this machine; where it is. */
  async function publish(address: string): Promise<string> {
    const [key, cert] = ['key.pem', 'cert.pem'].map(name => readFileSync(join(folder, name)))
    const server = createServer({ key, cert }, (_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(
        JSON.stringify({
          client_id: `${origin}/client.json`,
          client_name: 'Documented client',
          client_uri: origin,
          // Ports of this machine are chosen each time (RFC 8252 section 7.3).
          redirect_uris: ['http://127.0.0.1/callback'],
          grant_types: ['authorization_code', 'refresh_token'],
          token_endpoint_auth_method: 'none',
        }),
      )
    })
    servers.push(server)
    await once(server.listen(0, address), 'listening')
    const origin = `https://${address}:${(server.address() as AddressInfo).port}`
    return `${origin}/client.json`
  }

  before(async () => {
    document = await publish(ADDRESS)
    bridge = await startWithScopes('10m')
  })
  after(async () => {
    await stopAll()
    await stopFakeBrowsers()
    await stopLandings()
    await stopHosts()
    await stopIdentityProviders()
    await removeFolders()
    for (const server of servers) server.closeAllConnections()
    for (const server of servers) server.close()
  })

  for (const { name, start } of APPLICATIONS)
    describe(name, () => {
      const applications: Application[] = []
      afterEach(() => Promise.all(applications.splice(0).map(application => application.close())))

      async function signIn() {
        const person = new Person(bridge)
        const application = await start(bridge.resource, person, document)
        applications.push(application)
        await application.connect()
        return { person, application }
      }

      it('signs in with its document and later continues without a new consent', async () => {
        const { person, application } = await signIn()
        expect(await application.call('whoami')).to.include({ subject: 'ann', client: document })
        expect(person.consents).to.have.length(1)
        expect(person.consents[0]).to.include('Documented client').and.include(ADDRESS)
        await application.connect()
        expect(await application.call('whoami')).to.include({ subject: 'ann', client: document })
        expect(person.asked).to.have.length(1)
      })

      it('refreshes, and asks for consent again after revocation', async () => {
        const { person, application } = await signIn()
        const { refreshToken } = application.kept
        application.spoil()
        expect(await application.call('whoami')).to.include({ subject: 'ann' })
        expect(application.kept.refreshToken).to.be.a('string').and.not.equal(refreshToken)
        expect(person.asked).to.have.length(1)
        expect(await person.revokeAll()).to.be.above(0)
        application.spoil()
        expect(await application.call('whoami')).to.include({ subject: 'ann', client: document })
        expect([person.asked.length, person.consents.length]).to.deep.equal([2, 2])
      })

      it('is rejected when the document URL is not public', async () => {
        const person = new Person(bridge)
        const application = await start(bridge.resource, person, await publish('127.0.0.1'))
        applications.push(application)
        const refused = await rejectionOf(application.connect())
        expect(inspect(refused)).to.match(/client_id/)
      })
    })

  it('mcp-host login --client-metadata signs in with its document', async () => {
    const person = new Person(bridge)
    const browser = await startFakeBrowser(person.answer)
    const home = await makeFolder({})
    const env = { ...browser.env, MCP_HOST_HOME: home, MCP_HOST_TOKEN_KEY: '' }
    const url = bridge.resource
    const login = await runCli(['login', url, '--client-metadata', document], home, env)
    expect(login.stdout, login.stderr).to.include(`logged in at ${bridge.issuer} as client ${document}, scopes read, `)
    const call = await runCli(['call', url, 'whoami'], home, env)
    expect(JSON.parse(call.stdout)).to.include({ subject: 'ann', client: document })
    expect(person.consents).to.have.length(1)
  })
})
