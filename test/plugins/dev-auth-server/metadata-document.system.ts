// Tests client id metadata documents (CIMD) with a host process that trusts the test certificate.
import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { configText, stopAll } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { HandClient, REDIRECT, readClaims } from '../../support/form-browser.ts'
import { makeCertificate, startTrusting } from './certificate.ts'

describe('dev-auth-server: client id metadata documents (CIMD)', () => {
  let documents: Server
  let address: string
  let host: string
  const served = new Map<string, object>()

  before(async () => {
    const plugins = "'dev-auth-server': { scopes: ['mcp.tools'] }"
    const folder = await makeFolder({ 'mcp.config.mjs': configText({ plugins }) })
    const { key, cert, file } = makeCertificate(folder)
    documents = createServer({ key, cert }, (req, res) => {
      const document = served.get(req.url ?? '')
      res.writeHead(document ? 200 : 404, { 'Content-Type': 'application/json' })
      res.end(JSON.stringify(document ?? {}))
    }).listen(0, 'localhost')
    await once(documents, 'listening')
    address = `https://localhost:${(documents.address() as AddressInfo).port}`
    host = await startTrusting(file, ['start'], folder).listening()
  })
  after(async () => {
    await stopAll()
    documents.closeAllConnections()
    documents.close()
    await removeFolders()
  })

  function clientAt(path: string, metadata: object = {}): HandClient {
    const client_id = address + path
    served.set(path, {
      client_id,
      client_name: 'Documented',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
      ...metadata,
    })
    const client = new HandClient(`${host}/dev-auth`)
    client.clientId = client_id
    return client
  }

  const wanted = () => ({ resource: `${host}/`, scope: 'mcp.tools' })

  it('issues tokens without registration', async () => {
    const client = clientAt('/client.json')
    const { access_token } = await client.signIn('dev', wanted())
    expect(readClaims(access_token)).to.include({ client_id: `${address}/client.json`, scope: 'mcp.tools', sub: 'dev' })
  })

  it('shows the client name of the document', async () => {
    const client = clientAt('/named.json', { client_name: 'The Named One' })
    expect((await client.browser.signIn(client.authorizeUrl(wanted()), 'dev')).html).to.contain('The Named One')
  })

  for (const [what, path, metadata] of [
    ['says another client_id', '/other.json', { client_id: 'https://localhost/else.json' }],
    ['sends codes elsewhere than to this machine', '/elsewhere.json', { redirect_uris: ['https://evil.example/cb'] }],
    ['has a secret', '/secret.json', { client_secret: 'x', token_endpoint_auth_method: 'client_secret_basic' }],
  ] as const) {
    it(`rejects a client whose document ${what}`, async () => {
      const client = clientAt(path, metadata)
      const redirect_uri = 'redirect_uris' in metadata ? metadata.redirect_uris[0] : REDIRECT
      const page = await client.browser.page(client.authorizeUrl({ ...wanted(), redirect_uri }))
      expect(page.status).to.equal(400)
      expect(page.html).to.match(/invalid_(?:client_metadata|redirect_uri)/)
    })
  }

  it('rejects a client whose document cannot be fetched', async () => {
    const client = clientAt('/gone.json')
    served.delete('/gone.json')
    const page = await client.browser.page(client.authorizeUrl(wanted()))
    expect(page.status).to.equal(400)
    expect(page.html).to.include('invalid_client')
  })
})
