// Tests that upstream tokens and secrets never appear in responses, logs, metrics or the store.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { makeFolder, removeFolders } from '../../../config/folder.ts'
import { type StartedBridge, seen, startBridge } from '../../../support/bridge.ts'
import { stopIdentityProviders } from '../../../support/identity-provider.ts'
import { callAs } from '../../../support/protected-host.ts'
import { modern, type Received, responseListeners } from '../../../support/rpc.ts'
import { stopHosts } from '../../../support/start-host.ts'
import { send, watchedStore } from './attacker.ts'
import { Tally } from './tally.ts'

const MAIL = 'ann@acme.example'
const METRICS_TOKEN = 'a token for whoever reads metrics'

describe('auth-bridge: leaks of upstream tokens', () => {
  const watched = watchedStore()
  /** By what it is; of the provider, and of ours. */
  const theirs = new Map<string, string>()
  const ours = new Map<string, string>()
  /** Every answer of the host, headers first. */
  const answers: Array<Promise<{ readonly url: string; readonly type: string; readonly text: string }>> = []
  const { fetch } = globalThis
  const toAnswer = (url: string, { headers, text }: Pick<Received, 'headers' | 'text'>) => {
    const lines = [...headers].map(([name, value]) => `${name}: ${value}`).join('\n')
    return { url, type: headers.get('content-type') ?? '', text: `${lines}\n\n${text}` }
  }
  const listener = (url: string, received: Received) => {
    if (url.startsWith(bridge.url)) answers.push(Promise.resolve(toAnswer(url, received)))
  }
  let bridge: StartedBridge
  let folder: string

  before(async () => {
    folder = await makeFolder({})
    bridge = await startBridge({
      plugins: {
        'grant-store-test': watched.plugin,
        metrics: { path: '/metrics', token: METRICS_TOKEN },
        'access-log': { file: join(folder, 'access.log'), format: 'json' },
        audit: { file: join(folder, 'audit.jsonl') },
      },
      idp: {
        users: [
          { sub: 'ann', name: 'Ann Example', email: MAIL, groups: ['engineering'] },
          { sub: 'eve', name: 'Eve', groups: [] },
        ],
      },
      options: { allow: { domains: ['acme.example'] } },
    })
    const { idp } = bridge
    theirs.set('client secret', idp.clientSecret)
    theirs.set('client secret, as it is sent', encodeURIComponent(idp.clientSecret))
    idp.tamper = answer => {
      for (const name of ['access_token', 'refresh_token', 'id_token'])
        if (typeof answer[name] === 'string') theirs.set(`${name} ${theirs.size}`, answer[name])
      return answer
    }
    idp.tamperCallback = callback => {
      const code = callback.searchParams.get('code')
      if (code !== null) theirs.set(`code ${theirs.size}`, code)
    }
    globalThis.fetch = async (input, init) => {
      const response = await fetch(input, init)
      const url = String(input instanceof Request ? input.url : input)
      if (url.startsWith(bridge.url)) {
        const copy = response.clone()
        answers.push(copy.text().then(text => toAnswer(url, { headers: response.headers, text })))
      }
      return response
    }
    responseListeners.add(listener)
  })
  after(async () => {
    globalThis.fetch = fetch
    responseListeners.delete(listener)
    await stopHosts()
    await stopIdentityProviders()
    await removeFolders()
  })

  const keep = (what: string, value: string | undefined | null) => {
    if (value) ours.set(`${what} ${ours.size}`, value)
  }

  async function goodSession() {
    const client = await bridge.client()
    const back = await client.decide(await client.ask({ scope: 'read admin openid' }))
    keep('code', back.searchParams.get('code'))
    let tokens = await client.exchange(back)
    for (let round = 0; round < 3; round++) {
      keep('access token', tokens.access_token)
      keep('refresh token', tokens.refresh_token)
      expect((await callAs(bridge.resource, tokens.access_token)).status).to.equal(200)
      const headers = { Authorization: `Bearer ${tokens.access_token}` }
      await modern(bridge.resource, 'tools/call', { name: 'upstream' }, { headers })
      await modern(bridge.resource, 'tools/call', { name: 'upstream', arguments: { scope: 'User.Read' } }, { headers })
      tokens = await client.refresh(tokens.refresh_token ?? '')
    }
    await client.decide(await client.ask(), 'deny')
    const account = await client.browser.page(`${bridge.issuer}/account`)
    keep('csrf', account.fields['csrf'])
    for (const { pair } of client.browser.cookies.values()) keep('cookie', pair.split('=')[1])
    await client.refresh(tokens.refresh_token ?? '', { scope: 'read nonsense' })
    await client.token({ ...client.codeForm(back.searchParams.get('code') ?? '') })
    await client.browser.click(account, { signOut: 'yes' })
    await client.refresh(tokens.refresh_token ?? '')
    await callAs(bridge.resource, tokens.access_token)
  }

  /** A login whose code is refused by a provider that says back what it was sent. */
  async function faultySession(error: string, status: number) {
    const { idp } = bridge
    const client = await bridge.client()
    const browser = bridge.browser()
    const begun = await send(client.authorizeUrl({ resource: bridge.resource }))
    const cookies = (headers: Headers) =>
      headers
        .getSetCookie()
        .map(line => line.split(';')[0])
        .join('; ')
    const left = await send(begun.location as URL, { headers: { Cookie: cookies(begun.headers) } })
    const callback = await idp.signIn(left.location?.href ?? '')
    const code = callback.searchParams.get('code') ?? ''
    idp.failing.token = {
      status,
      error,
      error_description: `code ${code} of the client ${idp.clientId} with ${idp.clientSecret}`,
    }
    await send(callback, { headers: { Cookie: cookies(left.headers) } })
    await browser.open(callback)
    idp.failing.token = undefined
  }

  async function oddPages() {
    for (const path of [
      '/account',
      '/interaction/x',
      '/callback?code=x&state=y',
      '/authorize',
      '/token',
      '/register',
      '/jwks',
      '/nothing',
      '/.well-known/openid-configuration',
    ])
      for (const method of ['GET', 'POST']) await send(`${bridge.issuer}${path}`, { method })
    await send(`${bridge.url}/metrics`, { headers: { Authorization: `Bearer ${METRICS_TOKEN}` } })
    const { idp } = bridge
    idp.nextUser = 'eve'
    const refused = await bridge.client()
    await refused.ask().catch(() => undefined)
    idp.nextUser = 'ann'
  }

  /** How often any of these texts is in a text. */
  const leaksIn = (secrets: ReadonlyMap<string, string>, text: string) =>
    [...secrets].filter(([, secret]) => text.includes(secret)).map(([what]) => what)

  it('leaks no upstream token or secret in responses, logs, audit lines, metrics or stored entries', async () => {
    await goodSession()
    await goodSession()
    for (const [error, status] of [
      ['invalid_grant', 400],
      ['invalid_client', 401],
      ['server_error', 500],
      ['x', 200],
    ] as const)
      await faultySession(error, status)
    await oddPages()
    for (const { form } of bridge.idp.requests)
      if (form['code_verifier']) theirs.set(`verifier ${theirs.size}`, form['code_verifier'])
    for (const token of seen) theirs.set(`token of a tool ${theirs.size}`, token)
    expect(seen.length, 'tokens that tools were given').to.be.at.least(6)

    for (const what of [
      'access_token',
      'refresh_token',
      'id_token',
      'code',
      'verifier',
      'client secret',
      'token of a tool',
    ])
      expect(
        [...theirs.keys()].some(key => key.startsWith(what)),
        what,
      ).to.equal(true)
    expect(leaksIn(theirs, [...theirs.values()].join('')), 'the search itself').to.have.length(theirs.size)

    const all = await Promise.all(answers)
    const inAnswers = new Tally('answers: what the provider gave')
    for (const { url, text } of all) inAnswers.add(url, leaksIn(theirs, text).length === 0, leaksIn(theirs, text))
    inAnswers.end(80)

    const files = await Promise.all(['access.log', 'audit.jsonl'].map(name => readFile(join(folder, name), 'utf8')))
    const lines = [
      ...bridge.log.map(line =>
        inspect(line, { depth: 12, showHidden: true, maxStringLength: null, breakLength: Number.POSITIVE_INFINITY }),
      ),
      ...files.flatMap(text => text.split('\n').filter(Boolean)),
    ]
    const inLogs = new Tally('log lines: what the provider gave, our tokens, cookies and the e-mail address')
    for (const line of lines) {
      const found = [...leaksIn(theirs, line), ...leaksIn(ours, line), ...(line.includes(MAIL) ? ['e-mail'] : [])]
      inLogs.add(line.slice(0, 150), found.length === 0, found)
    }
    inLogs.end(60)

    const inStore = new Tally('entries of the store: the same')
    for (const { key, text } of watched.given) {
      const whole = `${key} ${text} ${Buffer.from(text.slice(1), 'base64url').toString('latin1')}`
      const found = [
        ...leaksIn(theirs, whole),
        ...leaksIn(ours, whole),
        ...(/ann@acme|Ann Example|127\.0\.0\.1/.test(whole) ? ['person'] : []),
      ]
      inStore.add(key, found.length === 0, found)
    }
    inStore.end(60)

    // The address is on the pages of whose it is, and nowhere else.
    const inOthers = new Tally('answers that are no page of the person: the e-mail address')
    for (const { url, type, text } of all)
      if (!type.includes('html') || !/\/(?:interaction|account|callback)/.test(url))
        inOthers.add(url, !text.includes(MAIL))
    inOthers.end(40)
  })
})
