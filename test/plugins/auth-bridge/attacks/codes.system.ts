// Tests that authorization codes cannot be injected, replayed, raced or redeemed without PKCE (RFC 9700 2.1.1, RFC
// 7636, OAuth 2.1 4.1).
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { REDIRECT } from '../../../support/form-browser.ts'
import { createGate } from '../../../support/gate.ts'
import { errorIn, isRefused, post, send, startTwo, watchedStore } from './attacker.ts'
import { Tally } from './tally.ts'

const CROWD = 50

const codeIn = (back: URL) => back.searchParams.get('code') ?? ''

describe('auth-bridge attacks: authorization codes', () => {
  let bridge: StartedBridge

  before(async () => {
    bridge = await startBridge()
  })
  after(stopBridges)

  const tokenAt = (issuer: string, form: Record<string, string>, headers?: Record<string, string>) =>
    post(`${issuer}/token`, form, headers)

  it('rejects the code of another client, and a code without its verifier, redirect URI or client', async () => {
    const tally = new Tally('code injection')
    // A client with one redirect URI need not name it (OAuth 2.1); with two it must be the code's.
    const victim = await bridge.client({ redirect_uris: [REDIRECT, `${REDIRECT}2`] })
    const thief = await bridge.client({ client_name: 'Thief', redirect_uris: [REDIRECT, `${REDIRECT}2`] })
    const fresh = async () => {
      const code = codeIn(await victim.decide(await victim.ask()))
      expect(code).to.not.equal('')
      return { client_id: victim.clientId, ...victim.codeForm(code) } as Record<string, string>
    }
    const changes: Record<string, (form: Record<string, string>) => Record<string, string>> = {
      'another client': form => ({ ...form, client_id: thief.clientId }),
      'another client and its verifier': form => ({
        ...form,
        client_id: thief.clientId,
        code_verifier: thief.verifier,
      }),
      'another verifier': form => ({ ...form, code_verifier: thief.verifier }),
      'no verifier': ({ code_verifier: _, ...form }) => form,
      'an empty verifier': form => ({ ...form, code_verifier: '' }),
      'a verifier that is cut': form => ({ ...form, code_verifier: form['code_verifier']?.slice(0, 42) ?? '' }),
      'a longer verifier': form => ({ ...form, code_verifier: `${form['code_verifier']}a` }),
      'the challenge as verifier': form => ({
        ...form,
        code_verifier: victim.authorizeUrl().searchParams.get('code_challenge') ?? '',
      }),
      'another redirect URI': form => ({ ...form, redirect_uri: `${REDIRECT}2` }),
      'no redirect URI': ({ redirect_uri: _, ...form }) => form,
      'no client': ({ client_id: _, ...form }) => form,
      'no such client': form => ({ ...form, client_id: 'nobody' }),
      'the code in other letters': form => ({ ...form, code: form['code']?.toUpperCase() ?? '' }),
      'the code and more': form => ({ ...form, code: `${form['code']}a` }),
      'as a refresh token': form => ({
        client_id: form['client_id'] ?? '',
        grant_type: 'refresh_token',
        refresh_token: form['code'] ?? '',
      }),
    }
    for (const [what, change] of Object.entries(changes)) {
      const got = await tokenAt(bridge.issuer, change(await fresh()))
      tally.add(what, isRefused(got) && got.status >= 400, got.text)
    }
    tally.end(15)
  })

  it("rejects a code injected into another user's callback, because the PKCE verifier differs", async () => {
    const tally = new Tally('code planted in another client’s callback')
    for (let round = 0; round < 5; round++) {
      const [attacker, victim] = [await bridge.client(), await bridge.client()]
      const code = codeIn(await attacker.decide(await attacker.ask()))
      // The victim's client takes the callback that the attacker made, and redeems with what it has.
      const got = await tokenAt(bridge.issuer, { client_id: victim.clientId, ...victim.codeForm(code) })
      tally.add('attacker’s code', errorIn(got) === 'invalid_grant', got.text)
    }
    tally.end(5)
  })

  it('rejects a replayed code and revokes the refresh token issued for the first use', async () => {
    const tally = new Tally('code replay')
    for (let round = 0; round < 5; round++) {
      const client = await bridge.client()
      const back = await client.decide(await client.ask())
      const first = await client.exchange(back)
      expect(first.error_description).to.equal(undefined)
      const again = await client.exchange(back)
      tally.add('the code again', again.error === 'invalid_grant', again)
      const refreshed = await client.refresh(first.refresh_token ?? '')
      tally.add('the first one’s refresh token', refreshed.error === 'invalid_grant', refreshed)
    }
    tally.end(10)
  })

  const race = async (issuers: readonly string[], client: BridgeClient) => {
    const form = { client_id: client.clientId, ...client.codeForm(codeIn(await client.decide(await client.ask()))) }
    const answers = await Promise.all(
      Array.from({ length: CROWD }, (_, index) => tokenAt(issuers[index % issuers.length] as string, form)),
    )
    const won = answers.flatMap(({ text }) => JSON.parse(text) as { access_token?: string; refresh_token?: string })
    return { answers, winners: won.filter(one => one.access_token !== undefined) }
  }

  it(`issues tokens at most once for ${CROWD} concurrent uses, and the replay revokes the refresh token`, async () => {
    const tally = new Tally(`code raced ${CROWD} times at one host`)
    const client = await bridge.client()
    const { answers, winners } = await race([bridge.issuer], client)
    expect(winners).to.have.length(1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      tally.add('a loser', errorIn(answer) === 'invalid_grant', answer.text)
    const refreshed = await client.refresh(winners[0]?.refresh_token ?? '')
    tally.add('the winner’s refresh token', refreshed.error === 'invalid_grant', refreshed)
    tally.end(CROWD)
  })

  it(`redeems a code at most once for ${CROWD} concurrent uses at two hosts with a shared store`, async () => {
    const tally = new Tally(`code raced ${CROWD} times at two hosts`)
    const { one, other } = await startTwo()
    const client = await one.client()
    const { answers, winners } = await race([`${one.url}/auth`, `${other.url}/auth`], client)
    expect(winners).to.have.length(1)
    for (const answer of answers.filter(({ status }) => status !== 200))
      tally.add('a loser', errorIn(answer) === 'invalid_grant', answer.text)
    const refreshed = await client.refresh(winners[0]?.refresh_token ?? '')
    tally.add('the winner’s refresh token', refreshed.error === 'invalid_grant', refreshed)
    tally.end(CROWD)
  })

  it('accepts a code at one of two racing nodes, and the replay revokes its tokens', async () => {
    const tally = new Tally('code found unused by two nodes at once')
    const watched = watchedStore()
    const bothLooked = createGate()
    let looks = 0
    const { get } = watched.store
    watched.store.get = async key => {
      const found = await get(key)
      if (!key.startsWith('granted:used AuthorizationCode:')) return found
      looks += 1
      if (looks === 2) bothLooked.open()
      await bothLooked.opened
      return found
    }
    const { one, other } = await startTwo({}, watched)
    const client = await one.client()
    const form = { client_id: client.clientId, ...client.codeForm(codeIn(await client.decide(await client.ask()))) }
    const answers = await Promise.all([one, other].map(({ url }) => tokenAt(`${url}/auth`, form)))
    const [winner, ...more] = answers.filter(({ status }) => status === 200)
    expect(more).to.have.length(0)
    tally.add('the loser', answers.filter(answer => errorIn(answer) === 'invalid_grant').length === 1, answers)
    const { refresh_token } = JSON.parse(winner?.text ?? '{}') as { refresh_token?: string }
    const refreshed = await client.refresh(refresh_token ?? '')
    tally.add('the winner’s refresh token', refreshed.error === 'invalid_grant', refreshed)
    tally.end(2)
  })

  it('rejects authorization requests without a PKCE challenge, with "plain" or an invalid challenge', async () => {
    const tally = new Tally('PKCE downgrade')
    const client = await bridge.client()
    const good = client.authorizeUrl().searchParams.get('code_challenge') ?? ''
    const bent: ReadonlyArray<Record<string, string | undefined>> = [
      { code_challenge: undefined, code_challenge_method: undefined },
      { code_challenge: undefined },
      { code_challenge: '' },
      { code_challenge: '', code_challenge_method: '' },
      { code_challenge_method: 'plain' },
      { code_challenge_method: 'plain', code_challenge: client.verifier },
      { code_challenge_method: undefined },
      { code_challenge_method: 's256' },
      { code_challenge_method: 'S512' },
      { code_challenge_method: 'none' },
      { code_challenge_method: 'S256 plain' },
      { code_challenge: good.slice(0, 42) },
      { code_challenge: `${good}=` },
      { code_challenge: 'a'.repeat(129) },
      { code_challenge: `${good.slice(0, 42)}!` },
    ]
    for (const parameters of bent) {
      const got = await send(client.authorizeUrl({ resource: bridge.resource, ...parameters }))
      tally.add(JSON.stringify(parameters), got.location?.searchParams.has('error') === true, got.location?.href)
    }
    tally.end(15)
  })
})
