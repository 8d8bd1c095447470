// Tests that floods of unfinished sign-ins use limited storage and do not evict signed-in users.
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { callAs } from '../../../support/protected-host.ts'
import { cookiesFor, send, watchedStore } from './attacker.ts'
import { Tally } from './tally.ts'

const FLOOD = 240
const AT_ONCE = 20
const MOST = { pending: 64 * 1_024, granted: 64 * 1_024 }

describe('auth-bridge attacks: sign-in floods', () => {
  // Only `flood` advances the clock, so a flood fits into one rate limit window on any machine. The store evicts by age.
  const clock = createManualClock()
  const watched = watchedStore(MOST, clock.now)
  let bridge: StartedBridge
  let victim: BridgeClient
  let refreshToken = ''
  let accessToken = ''
  let address = 0

  before(async () => {
    bridge = await startBridge({
      plugins: { 'grant-store-test': watched.plugin },
      config: { http: { trustProxy: true } },
      clock,
    })
    victim = await bridge.client()
    const tokens = await victim.logIn()
    refreshToken = tokens.refresh_token ?? ''
    accessToken = tokens.access_token
  })
  after(stopBridges)

  const fromAnother = (): Record<string, string> => {
    address += 1
    return { 'X-Forwarded-For': `198.51.${address >> 8}.${address & 255}` }
  }

  const flood = async (count: number, one: (index: number) => Promise<void>) => {
    for (let index = 0; index < count; index += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, more) => one(index + more)))
      await clock.advance(1)
    }
  }

  it('stores only pending sign-ins for a flood from many addresses, and keeps existing sessions', async () => {
    const tally = new Tally('login flood of many addresses')
    const client = await bridge.client()
    const before = watched.given.length
    await flood(FLOOD, async () => {
      const headers = fromAnother()
      const begun = await send(client.authorizeUrl({ resource: bridge.resource }), { headers })
      expect(begun.status).to.equal(303)
      const cookies = begun.headers.getSetCookie().map(line => line.split(';')[0])
      const next = await send(begun.location as URL, { headers: { ...headers, Cookie: cookies.join('; ') } })
      expect(next.location?.origin).to.equal(bridge.idp.origin)
    })
    const written = watched.given.slice(before)
    expect(written.length).to.be.at.least(FLOOD * 2)
    for (const { key } of written) tally.add(key, key.startsWith('pending:'), key)
    const there = (
      await Promise.all([...watched.kept.keys()].map(key => watched.store.get(key).then(text => ({ key, text }))))
    ).filter(({ text }) => text !== undefined)
    const pending = there.filter(({ key }) => key.startsWith('pending:'))
    const bytes = pending.reduce((sum, { key, text }) => sum + key.length + (text?.length ?? 0), 0)
    tally.add('bytes that are left', bytes <= MOST.pending, bytes)
    const call = await callAs(bridge.resource, accessToken)
    tally.add('the victim’s call', call.status === 200, call.status)
    const refreshed = await victim.refresh(refreshToken)
    tally.add('the victim’s refresh', refreshed.access_token !== undefined, refreshed)
    const url = `${bridge.issuer}/account`
    const account = await send(url, { headers: { Cookie: cookiesFor(victim.browser, url) } })
    tally.add('the victim’s session', account.text.includes('Ann Example'), account.text)
    tally.end(FLOOD * 2)
  })

  it('limits the rate of sign-ins from one address with 429', async () => {
    const client = await bridge.client()
    const uid = 'x'
    const places: Record<string, () => URL | string> = {
      authorize: () => client.authorizeUrl({ resource: bridge.resource }),
      interaction: () => `${bridge.issuer}/interaction/${uid}`,
      callback: () => `${bridge.issuer}/callback?state=x`,
      'account sign-in': () => `${bridge.issuer}/account/sign-in`,
    }
    for (const [what, place] of Object.entries(places)) {
      const tally = new Tally(`flood of one address at ${what}`)
      let passed = 0
      await flood(320, async () => {
        const { status } = await send(place(), { headers: { 'X-Forwarded-For': '203.0.113.77' } })
        if (status === 429) tally.add('beyond the limit', true)
        else passed += 1
      })
      expect(passed).to.equal(300)
      tally.end(20)
    }
  })

  it('stores nothing for pages opened by unauthenticated visitors', async () => {
    const tally = new Tally('pages opened by strangers')
    const before = watched.given.length
    const paths = [
      '/account',
      '/interaction/x',
      '/callback',
      '/callback?state=x',
      '/authorize',
      '/authorize/x',
      '/jwks',
      '/x',
      '/token',
      '/session/end',
    ]
    await flood(100, async index => {
      const got = await send(`${bridge.issuer}${paths[index % paths.length]}`, { headers: fromAnother() })
      tally.add(paths[index % paths.length] ?? '', got.status < 500, got.status)
    })
    tally.add(
      'entries',
      watched.given.length === before,
      watched.given.slice(before).map(({ key }) => key),
    )
    tally.end(101)
  })
})
