// Tests the key cache of an issuer over time with a fake clock: fetch, refresh, expiry and outage.
import { generateKeyPairSync } from 'node:crypto'
import { expect } from 'chai'
import { createIssuerKeys, type IssuerKeys } from '../../../plugins/families/issuer-keys/index.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestLog } from '../../support/start-host.ts'
import { makeKey, startIssuer, stopIssuers, type TestIssuer } from '../../support/test-issuer.ts'

const MINUTE = 60_000
const [first, second] = [makeKey('first'), makeKey('second')]

let issuer: TestIssuer
let keys: IssuerKeys
let log: ReturnType<typeof createTestLog>
let time = 0
beforeEach(async () => {
  time = 1_000_000
  issuer = await startIssuer({ keys: [first] })
  log = createTestLog()
  const ages = { maxAge: 5 * MINUTE, maxStale: 60 * MINUTE }
  const now = () => time
  keys = createIssuerKeys({ issuer: issuer.url, jwksUri: `${issuer.url}/jwks`, ...ages, lenient: false, log, now })
})
afterEach(async () => {
  keys.close()
  await stopIssuers()
})

/** How many keys there are for this id, or that nobody can tell. */
async function look(kid: string | undefined = 'first') {
  const found = await keys.find(kid, 'ES256')
  return 'keys' in found ? found.keys.length : `wait ${found.retryAfter}`
}

describe('auth-jwt: issuer keys', () => {
  it('are fetched once for concurrent requests', async () => {
    expect(await Promise.all([look(), look(), look()])).to.deep.equal([1, 1, 1])
    expect(issuer.asked).to.deep.equal(['/jwks'])
  })

  it('exclude encryption keys, unsupported types, private keys and malformed entries', async () => {
    const good = { ...first.publicKey.export({ format: 'jwk' }), kid: 'first' }
    issuer.others = [
      { ...good, use: 'enc' },
      { ...good, key_ops: ['sign'] },
      { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }), kid: 'first' },
      { ...generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' }), kid: 'first' },
      { ...good, x: 'no point' },
      { kty: 'oct', k: 'c2VjcmV0', kid: 'first' },
      { kid: 'first' },
    ]
    expect(await look()).to.equal(1)
    // The same key once more, for what it is used for.
    issuer.others = [{ ...good, key_ops: ['verify'] }]
    time += 5 * MINUTE
    expect(await look()).to.equal(2)
  })

  it('are refreshed in the background before expiry', async () => {
    await look()
    time += 4.5 * MINUTE
    issuer.keys = [first, makeKey('first')]
    expect(await look(), 'the set in hand').to.equal(1)
    await eventually('both keys', look, found => found === 2)
    expect(issuer.asked).to.have.lengthOf(2)
  })

  it('expire at the maximum age while the issuer responds, so a withdrawn key is removed', async () => {
    expect(await look()).to.equal(1)
    issuer.keys = [second]
    time += 5 * MINUTE
    expect(await look('first')).to.equal(0)
    expect(await look('second')).to.equal(1)
  })

  it('remain valid during an issuer outage up to the stale age, then verification is unavailable', async () => {
    await look()
    issuer.mood = 'broken'
    time += 5 * MINUTE
    expect(await look()).to.equal(1)
    expect(log.lines.map(({ level }) => level)).to.deep.equal(['error'])
    time += 54 * MINUTE
    expect(await look()).to.equal(1)
    await keys.checkUsable()
    time += 1 * MINUTE
    expect(await look()).to.match(/^wait [12]$/)
    expect(await keys.checkUsable()).to.equal(false)
    expect(log.lines.map(({ level }) => level)).to.deep.equal(['error'])
  })

  it('are fetched again two seconds after a failed fetch, not earlier', async () => {
    issuer.mood = 'broken'
    expect(await look()).to.equal('wait 2')
    const asked = issuer.asked.length
    issuer.mood = 'well'
    time += 1_999
    expect(await look()).to.equal('wait 1')
    expect(issuer.asked).to.have.lengthOf(asked)
    time += 1
    expect(await look()).to.equal(1)
    expect(log.lines.map(({ level }) => level)).to.deep.equal(['error', 'info'])
  })

  it('with an unknown id are fetched immediately, then at most every ten seconds', async () => {
    await look()
    issuer.keys = [first, second]
    expect(await Promise.all([look('second'), look('second')])).to.deep.equal([1, 1])
    expect(issuer.asked).to.have.lengthOf(2)
    for (const kid of ['a', 'b', 'c']) expect(await look(kid)).to.equal(0)
    time += 9_999
    expect(await look('d')).to.equal(0)
    expect(issuer.asked).to.have.lengthOf(2)
    time += 1
    expect(await look('e')).to.equal(0)
    expect(issuer.asked).to.have.lengthOf(3)
  })

  it('with an unknown id are unavailable, not invalid, during an issuer outage', async () => {
    await look()
    issuer.mood = 'broken'
    expect(await look('second')).to.equal('wait 2')
    expect(await look('first')).to.equal(1)
  })

  it('are current until withdrawn or past the maximum age', async () => {
    const found = await keys.find('first', 'ES256')
    const [key] = 'keys' in found ? found.keys : []
    if (!key) throw new Error('there is no key')
    expect(keys.isCurrent(key)).to.equal(true)
    issuer.keys = [first, second]
    await look('second')
    expect(keys.isCurrent(key), 'still in a newer set').to.equal(true)
    issuer.keys = [second]
    time += 10_000
    await look('third')
    expect(keys.isCurrent(key), 'withdrawn').to.equal(false)
  })

  it('are fetched by the first request after a failed warm-up', async () => {
    issuer.mood = 'broken'
    keys.warmUp()
    expect(await look()).to.equal('wait 1')
    issuer.mood = 'well'
    expect(await look()).to.equal(1)
  })

  it('are unavailable for an invalid key set document, and empty for an empty set', async () => {
    issuer.mood = 'missing'
    expect(await look()).to.equal('wait 2')
    issuer.mood = 'well'
    issuer.keys = []
    time += 2_000
    expect(await look()).to.equal(0)
  })
})
