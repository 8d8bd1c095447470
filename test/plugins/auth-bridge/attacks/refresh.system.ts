// Tests replayed, stolen and concurrent use of refresh tokens, and use after a node crash (RFC 9700 4.14).
import { expect } from 'chai'
import { type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { eventually } from '../../../support/eventually.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { callAs } from '../../../support/protected-host.ts'
import { errorIn, post, startTwo, watchedStore } from './attacker.ts'
import { Tally } from './tally.ts'

const CROWD = 20
const DAY = 24 * 3_600_000

describe('auth-bridge attacks: refresh tokens', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge({ clock: createManualClock(), options: { refreshGrace: '1s' } })
  })
  after(stopBridges)

  it('revokes all tokens of the grant when a refresh token is reused after the grace period', async () => {
    const tally = new Tally('refresh token replayed after the grace period')
    for (const thiefIsFirst of [true, false]) {
      const client = await bridge.client()
      const { refresh_token: stolen = '' } = await client.logIn()
      const first = await client.refresh(stolen)
      expect(first.access_token, 'the first').to.be.a('string')
      const next = await client.refresh(first.refresh_token ?? '')
      expect(next.access_token, 'the next').to.be.a('string')
      const replay = await eventually(
        'the end of the grace period',
        () => client.refreshLater(stolen),
        ({ error }) => error !== undefined,
      )
      const who = thiefIsFirst ? 'the victim, later' : 'the thief, later'
      tally.add(who, replay.error === 'invalid_grant', replay)
      for (const token of [stolen, first.refresh_token, next.refresh_token]) {
        const answer = await client.refresh(token ?? '')
        tally.add('any of the family', answer.error === 'invalid_grant', answer)
      }
    }
    expect(bridge.log.filter(({ code }) => code === 'MH2139')).to.not.have.length(0)
    tally.end(8)
  })

  it('ends the grant when two branches of a refresh token are used after the grace period', async () => {
    const tally = new Tally('refresh token stolen within the grace period')
    const clock = createManualClock()
    const host = await startBridge({ clock })
    for (const thiefIsFirst of [true, false]) {
      const client = await host.client()
      const { refresh_token: stolen = '' } = await client.logIn()
      // Both replace the same token, and each goes on within the grace period.
      const victim = await client.refresh((await client.refresh(stolen)).refresh_token ?? '')
      const thief = await client.refresh(stolen)
      expect([victim.error, thief.error]).to.deep.equal([undefined, undefined])
      const [first, second] = thiefIsFirst ? [thief, victim] : [victim, thief]
      await clock.advance(61_000)
      const chosen = await client.refresh(first.refresh_token ?? '')
      expect(chosen.error, 'one branch').to.equal(undefined)
      const next = await client.refresh(chosen.refresh_token ?? '')
      expect(next.error, 'one branch, again').to.equal(undefined)
      const before = host.log.length
      const other = await client.refresh(second.refresh_token ?? '')
      tally.add('the other branch', other.error === 'invalid_grant', other)
      const ended = await client.refresh(next.refresh_token ?? '')
      tally.add('the first branch, later', ended.error === 'invalid_grant', ended)
      const told = host.log.slice(before).filter(({ code }) => code === 'MH2139')
      expect(told.map(({ reason }) => reason)).to.deep.equal([
        'another token that replaced the same one was used after the grace period',
      ])
    }
    tally.end(4)
  })

  it(`accepts ${CROWD} concurrent refreshes at two hosts, and all new tokens work`, async () => {
    const { one, other } = await startTwo()
    const client = await one.client()
    const { refresh_token = '' } = await client.logIn()
    const refreshAt = async (url: string, token: string) => {
      const form = { client_id: client.clientId, grant_type: 'refresh_token', refresh_token: token }
      const { text } = await post(`${url}/auth/token`, form)
      return JSON.parse(text) as { access_token?: string; refresh_token?: string; error?: string }
    }
    const crowd = await Promise.all(
      Array.from({ length: CROWD }, (_, index) => refreshAt(index % 2 === 0 ? one.url : other.url, refresh_token)),
    )
    expect(crowd.map(({ error }) => error)).to.deep.equal(Array(CROWD).fill(undefined))
    const later = await Promise.all(crowd.map(answer => refreshAt(one.url, answer.refresh_token ?? '')))
    expect(later.map(({ error }) => error)).to.deep.equal(Array(CROWD).fill(undefined))
    const calls = await Promise.all(later.map(({ access_token }) => callAs(one.resource, access_token)))
    expect(calls.map(({ status }) => status)).to.deep.equal(Array(CROWD).fill(200))
  })

  it('rejects a modified refresh token and one of another client', async () => {
    const tally = new Tally('refresh token of another client, or spoiled')
    const victim = await bridge.client()
    const thief = await bridge.client({ client_name: 'Thief' })
    const { refresh_token: token = '', access_token } = await victim.logIn()
    const bent: Record<string, Record<string, string>> = {
      'by another client': { client_id: thief.clientId, refresh_token: token },
      'by nobody': { client_id: '', refresh_token: token },
      'in capitals': { refresh_token: token.toUpperCase() },
      'with more': { refresh_token: `${token}a` },
      cut: { refresh_token: token.slice(0, -1) },
      'an access token': { refresh_token: access_token },
      empty: { refresh_token: '' },
      'a key of the store': { refresh_token: `granted:RefreshToken:${token}` },
      'for more scopes': { refresh_token: token, scope: 'read admin openid' },
    }
    for (const [what, form] of Object.entries(bent)) {
      const got = await post(`${bridge.issuer}/token`, {
        client_id: victim.clientId,
        grant_type: 'refresh_token',
        ...form,
      })
      tally.add(what, got.status >= 400 && got.status < 500 && errorIn(got) !== null, got.text)
    }
    const still = await victim.refresh(token)
    expect(still.access_token, 'the victim’s own').to.be.a('string')
    tally.end(9)
  })

  it('ignores a revocation request by another client', async () => {
    const tally = new Tally('revocation by another client')
    const victim = await bridge.client()
    const thief = await bridge.client({ client_name: 'Thief' })
    const { refresh_token: token = '' } = await victim.logIn()
    for (const client_id of [thief.clientId, '', 'nobody']) {
      await post(`${bridge.issuer}/revoke`, { client_id, token, token_type_hint: 'refresh_token' })
    }
    const still = await victim.refresh(token)
    tally.add('revoked', still.access_token !== undefined, still)
    await post(`${bridge.issuer}/revoke`, { client_id: victim.clientId, token: still.refresh_token ?? '' })
    const dead = await victim.refresh(still.refresh_token ?? '')
    tally.add('used after its own client revoked it', dead.error === 'invalid_grant', dead)
    tally.end(2)
  })

  it('rejects a refresh token one day after its node crashed during the refresh', async () => {
    const tally = new Tally('refresh token used by a node that died')
    let time = Date.now()
    const watched = watchedStore(undefined, () => time)
    const { add, set } = watched.store
    let writes = Number.NEGATIVE_INFINITY
    const dying = (key: string) => {
      if (!/^granted:(?:used )?RefreshToken:/.test(key)) return
      writes += 1
      // The node is gone before its second write.
      if (writes === 2) throw new Error('the node died')
    }
    watched.store.add = async (key, text, ttl) => {
      dying(key)
      return add(key, text, ttl)
    }
    watched.store.set = async (key, text, ttl) => {
      dying(key)
      return set(key, text, ttl)
    }
    const host = await startBridge({ plugins: { 'grant-store-test': watched.plugin } })
    const client = await host.client()
    const { refresh_token: token = '' } = await client.logIn()
    writes = 0
    expect((await client.refresh(token)).error).to.equal('server_error')
    time += DAY + 3_600_000
    const late = await client.refresh(token)
    tally.add('a day later', late.error === 'invalid_grant', late)
    tally.end(1)
  })
})
