// The addresses of the bridge: what is there and what is not, who is let in, and what those are told who come too often.
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../support/bridge.ts'

describe('auth-bridge: the entrance', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  const send = (path: string, init: RequestInit = {}) =>
    fetch(`${bridge.issuer}${path}`, { redirect: 'manual', ...init })

  it('leads whoever opens it to the account page', async () => {
    const { status, headers } = await send('/')
    expect([status, headers.get('location')]).to.deep.equal([302, '/auth/account'])
  })

  it('has no other spelling, and nothing of oidc-provider that is not served', async () => {
    const paths = [
      '/Register',
      '/REGISTER',
      '/register/',
      '/Token',
      '/session/end',
      '/session/end/confirm',
      '/me',
      '/reg',
    ]
    const statuses = await Promise.all(
      ['GET', 'POST'].flatMap(method =>
        paths.map(async path => [path, (await send(path, { method })).status] as const),
      ),
    )
    const found = statuses.filter(([path, status]) => status !== 404 && !(path === '/register/' && status >= 400))
    console.log(`      ${statuses.length} tried, ${found.length} found`)
    expect(found).to.deep.equal([])
  })

  it('is no part of another site, and nobody is counted for it', async () => {
    const headers = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'image' }
    const client = await bridge.client()
    const statuses = new Set<number>()
    for (let count = 0; count < 320; count++) {
      const { status } = await fetch(client.authorizeUrl({ resource: bridge.resource }), {
        headers,
        redirect: 'manual',
      })
      statuses.add(status)
    }
    expect([...statuses]).to.deep.equal([403])
    expect((await client.ask({ scope: 'read' })).status).to.equal(200)
  })

  it('takes no more of a client than one has to say', async () => {
    const client = await bridge.client()
    const url = client.authorizeUrl({ resource: bridge.resource, state: 'x'.repeat(7_000) })
    expect((await fetch(url, { redirect: 'manual' })).status).to.equal(400)
  })

  it('tells who comes too often when to come again, on a page and as OAuth does', async () => {
    const other = await startBridge()
    const client = await other.client()
    const register = async () => client.register()
    let registered = await register()
    for (let count = 0; count < 70 && registered.status === 201; count++) registered = await register()
    expect([registered.status, registered.headers.get('retry-after')]).to.deep.equal([429, '60'])
    expect(await registered.json()).to.include({ error: 'temporarily_unavailable' })
    const url = client.authorizeUrl({ resource: other.resource })
    let page = await fetch(url, { redirect: 'manual' })
    for (let count = 0; count < 320 && page.status === 303; count++) page = await fetch(url, { redirect: 'manual' })
    expect([page.status, page.headers.get('retry-after'), page.headers.get('content-type')]).to.deep.equal([
      429,
      '60',
      'text/html; charset=utf-8',
    ])
    const told = other.log.filter(({ message }) => message?.startsWith('an address does this too often'))
    expect(told.map(({ what }) => what)).to.deep.equal(['register', 'authorize'])
  })
})
