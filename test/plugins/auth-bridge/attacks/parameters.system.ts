// Tests authorization and token requests with hostile, unsupported, repeated or oversized parameters.
import { expect } from 'chai'
import { type BridgeClient, type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { REDIRECT } from '../../../support/form-browser.ts'
import { unsignedToken } from '../../../support/identity-provider.ts'
import { errorIn, type Got, isRefused, post, send } from './attacker.ts'
import { Tally } from './tally.ts'

describe('auth-bridge attacks: request parameters', () => {
  let bridge: StartedBridge
  let client: BridgeClient

  before(async () => {
    bridge = await startBridge({ config: { http: { trustProxy: true } } })
    client = await bridge.client()
  })
  after(stopBridges)

  let address = 0
  const fromAnother = (): Record<string, string> => {
    address += 1
    return { 'X-Forwarded-For': `198.51.${address >> 8}.${address & 255}` }
  }
  const ask = (parameters: Record<string, string | undefined>) =>
    send(client.authorizeUrl({ resource: bridge.resource, ...parameters }), { headers: fromAnother() })
  const isError = (got: Got) => isRefused(got) && errorIn(got) !== null
  const isPage = ({ status, location }: Got) => status >= 400 && status < 500 && location === undefined

  it('rejects other response types and response modes', async () => {
    const tally = new Tally('response types and modes')
    for (const response_type of [
      'token',
      'id_token',
      'code token',
      'code id_token',
      'code id_token token',
      'none',
      '',
      'CODE',
      'x',
    ])
      tally.add(
        `type ${response_type}`,
        isError(await ask({ response_type })) || isPage(await ask({ response_type })),
        response_type,
      )
    for (const response_mode of [
      'fragment',
      'form_post',
      'web_message',
      'jwt',
      'query.jwt',
      'fragment.jwt',
      'okpostmessage',
      'x',
    ]) {
      const got = await ask({ response_mode, prompt: 'none' })
      const whole = `${got.text}${got.location?.href ?? ''}`
      tally.add(`mode ${response_mode}`, got.status < 500 && !/[?&#]code=|name="code"/.test(whole), whole)
    }
    tally.end(17)
  })

  it('sends a response only in the query of the redirect URI', async () => {
    const tally = new Tally('responses by another way than the query')
    const metadata = (await (await fetch(`${bridge.issuer}/.well-known/openid-configuration`)).json()) as object
    tally.add('metadata', JSON.stringify(Object(metadata).response_modes_supported) === '["query"]', metadata)
    for (const response_mode of ['fragment', 'form_post', 'web_message'])
      for (const more of [{}, { response_type: 'token' }, { prompt: 'none' }, { scope: '"' }]) {
        const next = await client.browser.open(
          client.authorizeUrl({ resource: bridge.resource, response_mode, ...more }),
        )
        const isError = 'redirect' in next && `${next.redirect.origin}${next.redirect.pathname}` === REDIRECT
        const what = `${response_mode} ${JSON.stringify(more)}`
        const isSafe = isError && /[?#]error=/.test(next.redirect.href) && !/[?&#]code=/.test(next.redirect.href)
        tally.add(what, isSafe, 'html' in next ? next.html : next.redirect.href)
      }
    tally.end(13)
  })

  it('rejects request objects and ignores unknown parameters', async () => {
    const tally = new Tally('request objects, and other features that are off')
    const request = unsignedToken({
      client_id: client.clientId,
      redirect_uri: 'https://evil.example/cb',
      response_type: 'code',
    })
    const bent: ReadonlyArray<Record<string, string>> = [
      { request },
      { request_uri: 'https://evil.example/request' },
      { request_uri: 'http://169.254.169.254/latest/meta-data' },
      { request_uri: 'urn:ietf:params:oauth:request_uri:x' },
      { request, request_uri: 'urn:x' },
      { registration: '{"redirect_uris":["https://evil.example/cb"]}' },
    ]
    for (const parameters of bent) tally.add(JSON.stringify(parameters), isError(await ask(parameters)), parameters)
    // What is not known is not read: the person is asked as ever, or nobody is.
    const ignored: ReadonlyArray<Record<string, string>> = [
      { claims: '{"id_token":{"sub":{"value":"mallory"}},"userinfo":{"email":null}}' },
      { claims: '{"id_token":{"email":{"essential":true},"groups":null}}' },
      { claims: 'x' },
      { claims: '['.repeat(2_000) },
      { id_token_hint: unsignedToken({ sub: 'ann' }) },
      { id_token_hint: 'x' },
      { acr_values: 'x', ui_locales: 'x', display: 'popup', max_age: '0' },
      { max_age: '-1' },
      { max_age: 'x' },
      { authorization_details: '[{"type":"x"}]' },
      { dpop_jkt: 'x'.repeat(43) },
      { web_message_uri: 'https://evil.example' },
      { login_hint: 'x'.repeat(3_000) },
      { login_hint: '"><script>alert(1)</script>' },
      { state: '"><script>alert(1)</script>' },
      { nonce: 'x'.repeat(3_000) },
    ]
    for (const parameters of ignored) {
      const got = await ask(parameters)
      const isSafe = got.status < 500 && isRefused(got) && !got.text.includes('<script>alert')
      tally.add(JSON.stringify(parameters).slice(0, 80), isSafe, `${got.status} ${got.location?.href ?? ''}`)
    }
    tally.end(22)
  })

  it('prompt=none neither signs in nor grants consent without a page', async () => {
    const tally = new Tally('prompt=none and its like')
    for (const prompt of ['none', 'none login', 'none consent', 'create', 'x', 'login none', '']) {
      const got = await ask({ prompt })
      tally.add(
        `stranger ${prompt}`,
        isError(got) || got.location?.pathname.startsWith('/auth/interaction') === true,
        got.location?.href,
      )
    }
    const other = await bridge.client({ client_name: 'Other' })
    await other.logIn()
    const fresh = await bridge.client({ client_name: 'Fresh' })
    for (const parameters of [
      { prompt: 'none' },
      { prompt: 'none', scope: 'openid' },
      { prompt: 'none', scope: 'admin' },
    ]) {
      const next = await other.browser.open(fresh.authorizeUrl({ resource: bridge.resource, ...parameters }))
      const isAsked =
        'redirect' in next && /^(?:consent|interaction)_required$/.test(next.redirect.searchParams.get('error') ?? '')
      tally.add(
        `another client ${JSON.stringify(parameters)}`,
        isAsked,
        'redirect' in next ? next.redirect.href : next.status,
      )
    }
    tally.end(10)
  })

  it('rejects repeated, oversized and misplaced parameters', async () => {
    const tally = new Tally('parameters repeated, huge, misplaced')
    const base = client.authorizeUrl({ resource: bridge.resource })
    for (const name of [
      'client_id',
      'redirect_uri',
      'response_type',
      'code_challenge',
      'code_challenge_method',
      'state',
      'scope',
      'prompt',
    ]) {
      for (const value of [base.searchParams.get(name) ?? 'x', 'https://evil.example/cb', '']) {
        const url = new URL(base)
        url.searchParams.append(name, value)
        // prompt and scope are not there yet: once is not twice.
        if (!base.searchParams.has(name)) url.searchParams.append(name, value)
        const got = await send(url, { headers: fromAnother() })
        tally.add(`${name} twice`, isError(got) || isPage(got), got.location?.href)
      }
      for (const value of ['x'.repeat(7_000), '\u0000', '%', '漢'.repeat(500)]) {
        const got = await ask({ [name]: value })
        const stays = got.location === undefined || [bridge.url, new URL(REDIRECT).origin].includes(got.location.origin)
        tally.add(`${name} is ${value.slice(0, 5)}`, got.status < 500 && isRefused(got) && stays, got.status)
      }
      const nested = await send(`${base}&${name}[x]=y&${name}[]=z&__proto__[x]=y`, { headers: fromAnother() })
      tally.add(`${name} nested`, nested.status < 500 && isRefused(nested), nested.status)
    }
    const code = (await client.decide(await client.ask())).searchParams.get('code') ?? ''
    const form = { client_id: client.clientId, ...client.codeForm(code) }
    for (const name of Object.keys(form)) {
      const body = new URLSearchParams(form)
      body.append(name, 'x')
      const got = await send(`${bridge.issuer}/token`, { method: 'POST', body })
      tally.add(`token: ${name} twice`, got.status === 400, got.text)
    }
    const inQuery = await send(`${bridge.issuer}/token?${new URLSearchParams(form)}`, { method: 'POST' })
    tally.add('token: in the query', inQuery.status === 400, inQuery.text)
    const asJson = await send(`${bridge.issuer}/token`, {
      method: 'POST',
      body: JSON.stringify(form),
      headers: { 'Content-Type': 'application/json' },
    })
    tally.add('token: as JSON', asJson.status === 400, asJson.text)
    const huge = await post(`${bridge.issuer}/token`, { ...form, x: 'x'.repeat(2_000_000) })
    tally.add('token: huge', huge.status >= 400 && huge.status < 500, huge.status)
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'HEAD'])
      for (const path of ['/token', '/register', '/revoke']) {
        const got = await send(`${bridge.issuer}${path}?${new URLSearchParams(form)}`, { method })
        tally.add(`${method} ${path}`, got.status >= 400 && got.status < 500, got.status)
      }
    const last = await post(`${bridge.issuer}/token`, form)
    expect(last.status, 'the code was not used up by any of them').to.equal(200)
    tally.end(85)
  })

  it('rejects a cross-site POST to the authorization endpoint', async () => {
    const tally = new Tally('POST to /authorize')
    const victim = await bridge.client()
    await victim.logIn()
    const parameters = Object.fromEntries(client.authorizeUrl({ resource: bridge.resource }).searchParams)
    for (const Origin of ['https://evil.example', 'null', bridge.url]) {
      const got = await post(`${bridge.issuer}/authorize`, parameters, { Origin, ...fromAnother() })
      tally.add(Origin, isRefused(got), got.location?.href)
    }
    for (const method of ['PUT', 'DELETE', 'PATCH']) {
      const got = await send(`${bridge.issuer}/authorize`, { method, body: new URLSearchParams(parameters) })
      tally.add(method, got.status >= 400 && got.status < 500, got.status)
    }
    tally.end(6)
  })

  it("grants no scope outside the user's permissions", async () => {
    const tally = new Tally('scopes')
    const idp = bridge.idp.users
    idp.set('bob', { sub: 'bob', name: 'Bob', email: 'bob@acme.example', groups: [] })
    bridge.idp.nextUser = 'bob'
    for (const scope of [
      'admin',
      'read admin',
      'admin admin',
      'ADMIN',
      'read\tadmin',
      'read%20admin',
      'openid admin',
      'openid offline_access admin',
      '* admin',
      'admin:x',
      'constructor',
      '__proto__',
      'toString',
    ]) {
      const fresh = await bridge.client()
      const next = await fresh.browser.open(fresh.authorizeUrl({ resource: bridge.resource, scope }))
      if (!('html' in next) || !next.html.includes('name="decision"')) {
        tally.add(scope, true)
        continue
      }
      const after = await fresh.browser.click(next, { decision: 'allow' })
      const code = 'redirect' in after ? after.redirect.searchParams.get('code') : null
      const tokens = code === null ? undefined : await fresh.token(fresh.codeForm(code))
      const got = (tokens?.scope ?? '').split(' ')
      tally.add(scope, !got.some(one => !['read', 'openid', 'offline_access', ''].includes(one)), tokens)
    }
    tally.end(13)
  })
})
