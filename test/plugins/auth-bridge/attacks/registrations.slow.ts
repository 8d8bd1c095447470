// Tests dynamic client registration against floods, junk, tampered client ids and secrets (RFC 7591 section 5).
import { createHmac } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { deflateRawSync } from 'node:zlib'
import { expect } from 'chai'
import { createRegisteredClients } from '../../../../plugins/auth-bridge/clients/client-rules.ts'
import { type StartedBridge, startBridge, stopBridges } from '../../../support/bridge.ts'
import { REDIRECT } from '../../../support/form-browser.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { errorIn, isRefused, post, send, watchedStore } from './attacker.ts'
import { junkMetadata } from './junk-metadata.ts'
import { Tally } from './tally.ts'

const FLOOD = 100
/** Registrations from many addresses. */
const MANY = 600
/** Bytes of the heap. */
const MOST_GROWTH = 4 * 1_048_576
/** Of one address, in a minute. */
const MOST_REGISTRATIONS = 60

describe('auth-bridge attacks: dynamic client registration', () => {
  const watched = watchedStore()
  let bridge: StartedBridge
  /** Each of another address, for what is limited per address is not attacked there. */
  let address = 0
  const fromAnother = () => {
    address += 1
    return { 'X-Forwarded-For': `198.51.${address >> 8}.${address & 255}` }
  }

  before(async () => {
    bridge = await startBridge({
      plugins: { 'grant-store-test': watched.plugin },
      config: { http: { trustProxy: true } },
      // It stands still: one minute is one window of the limit, however slow the machine is.
      clock: createManualClock(),
    })
  })
  after(stopBridges)

  const register = (body: unknown, headers: Record<string, string> = fromAnother()) =>
    send(`${bridge.issuer}/register`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })

  const GOOD = {
    client_name: 'Good',
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  }

  it('limits the rate of registrations from one address with 429, and stores nothing', async () => {
    const tally = new Tally('registration flood of one address')
    const kept = watched.given.length
    let passed = 0
    for (let index = 0; index < FLOOD; index++) {
      const got = await register({ ...GOOD, client_name: `Flood ${index}` }, { 'X-Forwarded-For': '203.0.113.9' })
      if (got.status === 201) passed += 1
      else tally.add('beyond the limit', got.status === 429, got.status)
    }
    expect(passed).to.equal(MOST_REGISTRATIONS)
    expect(watched.given.length - kept, 'entries in the store').to.equal(0)
    tally.end(FLOOD - MOST_REGISTRATIONS)
  })

  it('stores nothing for a flood from many addresses, and does not grow the heap', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const heap = () => {
      collect()
      return process.memoryUsage().heapUsed
    }
    const flood = async (count: number) => {
      for (let made = 0; made < count; made++) expect((await register(GOOD)).status).to.equal(201)
    }
    await flood(100)
    const before = heap()
    await flood(MANY)
    expect(watched.given).to.deep.equal([])
    expect(heap() - before).to.be.below(MOST_GROWTH)
  })

  it('answers junk metadata without server errors, and accepted clients reach the consent page', async () => {
    const tally = new Tally('junk metadata')
    for (const [what, body] of junkMetadata(GOOD)) {
      const got = await register(body)
      tally.add(`${what}: ${got.text.slice(0, 80)}`, got.status < 500, got.status)
      if (got.status !== 201) continue
      const { client_id, redirect_uris = [] } = JSON.parse(got.text) as { client_id: string; redirect_uris?: string[] }
      const url = new URL(`${bridge.issuer}/authorize`)
      const query = {
        client_id,
        redirect_uri: redirect_uris[0] ?? '',
        response_type: 'code',
        code_challenge_method: 'S256',
      }
      url.search = new URLSearchParams({
        ...query,
        code_challenge: 'a'.repeat(43),
        resource: bridge.resource,
      }).toString()
      const asked = await send(url, { headers: fromAnother() })
      tally.add(`${what}, asked for`, asked.status < 500, `${asked.status} ${client_id}`)
    }
    tally.end(300)
  })

  const askWith = (clientId: string) =>
    send(
      `${bridge.issuer}/authorize?${new URLSearchParams({
        ...{ client_id: clientId, redirect_uri: REDIRECT, response_type: 'code', code_challenge: 'a'.repeat(43) },
        ...{ code_challenge_method: 'S256', resource: bridge.resource },
      })}`,
      { headers: fromAnother() },
    )

  const idOf = async (metadata: object) =>
    (JSON.parse((await register(metadata)).text) as { client_id: string }).client_id

  it('rejects a client id with any changed character', async () => {
    const tally = new Tally('tampered client id')
    const id = await idOf(GOOD)
    expect((await askWith(id)).status).to.equal(303)
    const bends = [...id].map(
      (letter, index) => id.slice(0, index) + (letter === 'A' ? 'B' : 'A') + id.slice(index + 1),
    )
    bends.push(id.slice(1), id.slice(0, -1))
    const [, body = '', signature = ''] = id.split('.')
    const other = (await idOf({ ...GOOD, client_name: 'Other' })).split('.')
    bends.push(
      `reg.${body}.`,
      `reg.${body}`,
      `reg..${signature}`,
      'reg.',
      'reg',
      '.',
      `${id}.`,
      `${id}=`,
      ` ${id}`,
      `${id}%00`,
    )
    bends.push(
      `reg.${other[1]}.${signature}`,
      `reg.${body}.${other[2]}`,
      `REG.${body}.${signature}`,
      `${id}.${signature}`,
    )
    for (const bent of bends.filter(one => one !== id)) {
      const got = await askWith(bent)
      tally.add(bent, got.status === 400 && got.location === undefined, got.status)
    }
    tally.end(id.length)
  })

  it('rejects unsigned client ids and those signed by another host', async () => {
    const tally = new Tally('client id of another host, or made up')
    const foreign = createRegisteredClients([Buffer.alloc(32, 1)])
    const made = (bytes: Buffer | string) => {
      const body = deflateRawSync(bytes).toString('base64url')
      return `reg.${body}.${createHmac('sha256', 'x').update(`client ${body}`).digest().subarray(0, 16).toString('base64url')}`
    }
    const ids = {
      'of another host': foreign.idOf(GOOD),
      'made up': made(JSON.stringify(GOOD)),
      'a bomb': made(Buffer.alloc(8 * 1_048_576)),
      'no JSON': made('x'),
      'a list': made('[]'),
      null: made('null'),
      'with a prototype': made('{"__proto__":{"redirect_uris":["https://evil.example"]}}'),
    }
    for (const [what, id] of Object.entries(ids)) {
      const got = await askWith(id)
      tally.add(what, got.status === 400 && got.location === undefined, got.status)
    }
    const two = await startBridge({
      idp: bridge.idp,
      config: { secrets: ['another secret for tests, long enough to be one'] },
    })
    const elsewhere = await two.client()
    tally.add('of a host with other secrets', (await askWith(elsewhere.clientId)).status === 400)
    tally.end(8)
  })

  it('accepts only the issued secret of a confidential client', async () => {
    const tally = new Tally('client secrets')
    const made = JSON.parse(
      (await register({ ...GOOD, token_endpoint_auth_method: 'client_secret_post' })).text,
    ) as Record<string, string>
    const { client_id = '', client_secret = '' } = made
    const another = JSON.parse(
      (await register({ ...GOOD, client_name: 'B', token_endpoint_auth_method: 'client_secret_post' })).text,
    ) as Record<string, string>
    const form = { client_id, grant_type: 'refresh_token', refresh_token: 'x' }
    const right = await post(`${bridge.issuer}/token`, { ...form, client_secret }, fromAnother())
    expect(errorIn(right), 'the secret itself').to.equal('invalid_grant')
    const wrong = [
      ...[
        '',
        ' ',
        'x',
        client_secret.slice(0, -1),
        `${client_secret}a`,
        client_secret.toUpperCase(),
        another['client_secret'] ?? '',
      ],
      ...[
        client_id,
        `\0${client_secret}`,
        client_secret.split('').reverse().join(''),
        'undefined',
        'null',
        'true',
        '[object Object]',
      ],
    ]
    for (const secret of wrong) {
      const got = await post(`${bridge.issuer}/token`, { ...form, client_secret: secret }, fromAnother())
      tally.add(
        JSON.stringify(secret),
        errorIn(got) === 'invalid_client' || errorIn(got) === 'invalid_request',
        got.text,
      )
      const basic = Buffer.from(`${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`).toString('base64')
      const by = await post(
        `${bridge.issuer}/token`,
        { grant_type: 'refresh_token', refresh_token: 'x' },
        { ...fromAnother(), Authorization: `Basic ${basic}` },
      )
      tally.add(`Basic ${JSON.stringify(secret)}`, isRefused(by) && errorIn(by) !== 'invalid_grant', by.text)
    }
    const none = await post(`${bridge.issuer}/token`, form, fromAnother())
    tally.add('none', errorIn(none) === 'invalid_client' || errorIn(none) === 'invalid_request', none.text)
    tally.end(29)
  })
})
