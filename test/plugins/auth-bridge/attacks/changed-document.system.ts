// Tests that a change in a client's metadata document requires new consent.
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { stopAll } from '../../../cli/run-cli.ts'
import { removeFolders } from '../../../config/folder.ts'
import { BridgeClient } from '../../../support/bridge.ts'
import { eventually } from '../../../support/eventually.ts'
import {
  type IdentityProvider,
  startIdentityProvider,
  stopIdentityProviders,
} from '../../../support/identity-provider.ts'
import { makeKey, toJwk } from '../../../support/test-issuer.ts'
import { type Documents, goodAt, idAt, startDocuments, startHostOf } from './document-server.ts'
import { Tally } from './tally.ts'

const HOME = 'https://app.example/cb'
/** Consent is remembered only for clients that authenticate. */
const CONFIDENTIAL = {
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_signing_alg: 'ES256',
  jwks: { keys: [toJwk(makeKey('client'))] },
}

describe('auth-bridge attacks: changed client metadata documents', () => {
  let idp: IdentityProvider
  let documents: Documents
  let host: Awaited<ReturnType<typeof startHostOf>>

  before(async () => {
    idp = await startIdentityProvider()
    documents = await startDocuments()
    host = await startHostOf(idp, documents, { open: documents.port, proxied: false })
  })
  after(async () => {
    await stopAll()
    await Promise.all([documents.stop(), stopIdentityProviders()])
    await removeFolders()
  })

  it('asks for consent again after each change, and issues no code before', async () => {
    const tally = new Tally('changed metadata document')
    const changes: Record<string, object> = {
      name: { client_name: 'Another' },
      page: { client_uri: 'https://app.example/' },
      places: { redirect_uris: [HOME, 'https://app.example/more'] },
      'the way to authenticate': { token_endpoint_auth_method: 'none' },
    }
    const allowed = await Promise.all(
      Object.entries(changes).map(async ([what, change], index) => {
        const path = `/changing-${index}`
        const document = { ...goodAt(documents, path), ...CONFIDENTIAL, redirect_uris: [HOME] }
        documents.said.set(path, document)
        const client = new BridgeClient(host.issuer, host.resource, idp.origin)
        client.clientId = idAt(documents, path)
        const parameters = { redirect_uri: HOME, resource: host.resource }
        const code = await client.decide(await client.ask(parameters))
        expect(code.searchParams.has('code')).to.equal(true)
        const again = await client.browser.open(client.authorizeUrl(parameters))
        expect('redirect' in again && again.redirect.searchParams.has('code'), 'is remembered').to.equal(true)
        documents.said.set(path, { ...document, ...change })
        return { what, client, parameters }
      }),
    )
    // The document is read again once its time is over, which is 10 s at least.
    for (const { what, client, parameters } of allowed) {
      const next = await eventually(
        `it is read that ${what} changed`,
        async () => {
          // One address begins 300 sign-ins in a minute.
          await pause(500)
          return client.browser.open(client.authorizeUrl(parameters))
        },
        found => !('redirect' in found) || !found.redirect.searchParams.has('code'),
      )
      // Keys that are none make a client that is none.
      const isRefused = 'html' in next && (/Something changed/.test(next.html) || next.status === 400)
      tally.add(what, isRefused, 'html' in next ? next.html : next.redirect.href)
    }
    tally.end(4)
  })

  it('links the homepage of a client only at the host of its document', async () => {
    const homepages = [idAt(documents, '/about'), 'https://elsewhere.example/about']
    const pages = await Promise.all(
      homepages.map(async (client_uri, index) => {
        const path = `/homepage-${index}`
        documents.said.set(path, { ...goodAt(documents, path), redirect_uris: [HOME], client_uri })
        const client = new BridgeClient(host.issuer, host.resource, idp.origin)
        client.clientId = idAt(documents, path)
        return (await client.ask({ redirect_uri: HOME, resource: host.resource })).html
      }),
    )
    expect(pages.map((html, index) => html.includes(`href="${homepages[index]}"`))).to.deep.equal([true, false])
  })

  it('keeps the open consent page usable, and ignores an answer to the outdated one', async () => {
    const path = '/open-page'
    const document = { ...goodAt(documents, path), ...CONFIDENTIAL, redirect_uris: [HOME] }
    documents.said.set(path, document)
    const client = new BridgeClient(host.issuer, host.resource, idp.origin)
    client.clientId = idAt(documents, path)
    const page = await client.ask({ redirect_uri: HOME, resource: host.resource })
    expect(page.status).to.equal(200)
    documents.said.set(path, { ...document, client_name: 'Somebody Else' })
    const statuses = new Set<number>()
    await eventually(
      'the document is read again for the page',
      async () => {
        await pause(500)
        const again = await client.browser.page(page.url)
        statuses.add(again.status)
        return again.html
      },
      html => html.includes('Somebody Else'),
    )
    expect([...statuses]).to.deep.equal([200])
    const answered = await client.browser.click(page, { decision: 'allow' })
    expect('html' in answered && answered.status).to.equal(403)
    const asked = await client.browser.page(page.url)
    expect((await client.decide(asked)).searchParams.has('code')).to.equal(true)
  })
})
