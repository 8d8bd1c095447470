// The console of a host with auth-bridge: its OAuth clients, and the grants of its users.

import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createMemoryStore } from '../../../core/auth.ts'
import { createConsents } from '../../../plugins/auth-bridge/people/accounts.ts'
import { type GrantRow, type Grants, PATHS } from '../../../plugins/console/api.ts'
import { createRecords, createSealer } from '../../../plugins/families/credentials/index.ts'
import { createGrantStore } from '../../../plugins/families/grant-store/index.ts'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'
import { REDIRECT, readClaims } from '../../support/form-browser.ts'
import { modern } from '../../support/rpc.ts'
import { type ApiReply, ask, headersIn, logIn, placeOf, startConsole } from './console-client.ts'

describe('The console of a host with auth-bridge', () => {
  let bridge: StartedBridge
  let get: (path: string) => Promise<ApiReply>

  before(async () => {
    const fixed = [{ clientId: 'desk', name: 'Desk', redirects: [REDIRECT] }]
    bridge = await startBridge({
      plugins: { console: { port: 0 } },
      options: { clients: { fixed, redirects: ['http://127.0.0.1:*/**'] } },
    })
    const { origin, token } = placeOf(bridge)
    const headers = headersIn(await logIn(origin, token))
    get = path => ask(`${origin}${path}`, { headers })
  })
  after(stopBridges)

  const read = async (): Promise<Grants> => (await get(PATHS.grants)).body

  it('lists clients and grants without tokens, codes and subjects', async () => {
    expect(await read()).to.deep.include({ available: true, clients: [], grants: [], cut: false })
    const client = await bridge.client({ client_name: 'Hand\u202e & Co' })
    const tokens = await client.logIn({ scope: 'read' })
    const desk = await bridge.client()
    desk.clientId = 'desk'
    await desk.decide(await desk.ask({ scope: 'read' }))

    const { clients, grants } = await read()
    expect(clients.map(({ name, from, grants: count, users }) => [name, from, count, users])).to.deep.equal([
      ['Desk', 'config', 1, 1],
      ['Hand? & Co', 'registration', 1, 1],
    ])
    const [unused, used] = grants as [GrantRow, GrantRow]
    expect(unused).to.deep.include({ client: { id: 'desk', name: 'Desk' }, scopes: ['read'] })
    expect(unused).not.to.have.property('usedAt')
    expect(used.usedAt).to.be.at.least(used.createdAt)

    const headers = { Authorization: `Bearer ${tokens.access_token}` }
    await modern(bridge.resource, 'tools/call', { name: 'whoami' }, { headers })
    const { calls } = (await get(PATHS.calls)).body
    expect(used.user, 'the pseudonym of calls').to.equal(calls[0].user)

    const { text } = await get(PATHS.grants)
    const { sub } = readClaims(tokens.access_token)
    for (const secret of [tokens.access_token, tokens.refresh_token, sub]) expect(text).not.to.include(`${secret}`)
  })

  it('omits a grant that its user has revoked', async () => {
    const client = await bridge.client({ client_name: 'Revoked' })
    await client.logIn({ scope: 'read' })
    const names = async () => (await read()).clients.map(({ name }) => name)
    expect(await names()).to.include('Revoked')
    const page = await client.browser.page(`${bridge.issuer}/account`)
    const item = page.html.slice(page.html.indexOf('Revoked'))
    const [, revoke = ''] = /name="revoke" value="([^"]+)"/.exec(item) ?? []
    await client.browser.click(page, { revoke })
    expect(await names()).not.to.include('Revoked')
  })

  it('has the newest 200 grants', async () => {
    const records = createRecords(createGrantStore(createMemoryStore()), createSealer([randomBytes(32)]))
    const consents = createConsents(records, 60_000)
    const common = { login: 'one', client: { id: 'desk' }, redirectUri: REDIRECT, resources: [], scopes: [] }
    for (let since = 1_000; since <= 1_200; since++) {
      await consents.keep({ ...common, grantId: `grant ${since}`, subject: `user ${since}`, since })
      if (since === 1_199) expect((await consents.newest()).isCut).to.equal(false)
    }
    const { list, isCut } = await consents.newest()
    expect(isCut).to.equal(true)
    expect(list.map(({ since }) => since)).to.deep.equal(Array.from({ length: 200 }, (_, index) => 1_200 - index))
  })

  it('shows that auth-bridge is off', async () => {
    const operator = await startConsole({ toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } } })
    const { body } = await operator.get(PATHS.grants)
    expect(body).to.include({ available: false })
    expect(body.fix).to.match(/^auth-bridge: /)
  })
})
