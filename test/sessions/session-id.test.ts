// Tests signed session ids: format, owner binding, forgery and secret rotation.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { createSessionIds, shortId } from '../../core/sessions/session-id.ts'

const [key, olderKey, foreignKey] = [randomBytes(32), randomBytes(32), randomBytes(32)]
const ids = createSessionIds([key, olderKey])
const ada = { route: '/', user: { issuer: 'https://login.example', subject: 'ada' } }
const anonymous = { route: '/', user: undefined }

describe('Session id', () => {
  it('has 76 visible ASCII characters, valid in a header and a query', () => {
    expect(ids.create(ada)).to.match(/^[\w-]{76}$/)
  })

  it('contains version, 128 random bits and time', () => {
    const now = Date.UTC(2026, 0, 2)
    const [one, two] = [ids.create(ada, now), ids.create(ada, now)].map(id => Buffer.from(id, 'base64url'))
    expect(one?.[0]).to.equal(1)
    expect(one?.subarray(1, 3)).to.deep.equal(two?.subarray(1, 3))
    expect(one?.subarray(3, 19)).not.to.deep.equal(two?.subarray(3, 19))
    expect(one?.subarray(19, 41)).to.deep.equal(two?.subarray(19, 41))
    expect(ids.verify(ids.create(ada, now))?.createdAt).to.equal(now)
  })

  it('is unique', () => {
    const many = new Set(Array.from({ length: 1_000 }, () => ids.create(anonymous, 0)))
    expect(many.size).to.equal(1_000)
  })

  it('hides its owner without the key', () => {
    const text = Buffer.from(ids.create(ada), 'base64url').toString('latin1')
    expect(text).not.to.match(/ada|login/)
    const owners = [key, foreignKey].map(one =>
      Buffer.from(createSessionIds([one]).create(ada), 'base64url')
        .subarray(25, 37)
        .toString('hex'),
    )
    expect(owners[0]).not.to.equal(owners[1])
  })

  it('is bound to route, issuer and subject together', () => {
    const owned = (owner: typeof ada | typeof anonymous) => ids.verify(ids.create(ada))?.isOwnedBy(owner)
    expect(owned({ route: '/', user: { ...ada.user } })).to.equal(true)
    expect(owned({ route: '/other', user: ada.user })).to.equal(false)
    expect(owned({ route: '/', user: { ...ada.user, issuer: 'https://evil.example' } })).to.equal(false)
    expect(owned({ route: '/', user: { ...ada.user, subject: 'bob' } })).to.equal(false)
    expect(owned(anonymous)).to.equal(false)
    expect(ids.verify(ids.create(anonymous))?.isOwnedBy(ada)).to.equal(false)
    expect(ids.verify(ids.create(anonymous))?.isOwnedBy(anonymous)).to.equal(true)
  })

  it('binds its fields separately, so that shifted boundaries give another owner', () => {
    const joined = { route: '/', user: { issuer: 'a', subject: 'bc' } }
    const id = ids.verify(ids.create(joined))
    expect(id?.isOwnedBy(joined)).to.equal(true)
    expect(id?.isOwnedBy({ route: '/', user: { issuer: 'ab', subject: 'c' } })).to.equal(false)
  })
})

describe('Invalid session id', () => {
  it('is rejected with any single bit changed', () => {
    const bytes = Buffer.from(ids.create(ada), 'base64url')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const altered = Buffer.from(bytes)
      altered[bit >> 3] = (altered[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(ids.verify(altered.toString('base64url')), `bit ${bit}`).to.equal(undefined)
    }
  })

  it('is rejected if truncated, padded, re-encoded or empty', () => {
    const id = Array.from({ length: 1_000 }, () => ids.create(ada)).find(one => /[-_]/.test(one)) ?? ''
    expect(ids.verify(id)?.isOwnedBy(ada)).to.equal(true)
    const others = [
      ...[id.slice(0, -1), id.slice(1), `${id}A`, `${id}=`, ` ${id}`, `${id}\n`, '', 'x', '.'.repeat(76)],
      ...[Buffer.from(id, 'base64url').toString('base64'), `${id.slice(0, 38)} ${id.slice(38)}`],
    ]
    for (const other of others) expect(ids.verify(other), JSON.stringify(other)).to.equal(undefined)
  })

  it('is rejected with a foreign signature, with or without our key id', () => {
    const foreign = Buffer.from(createSessionIds([foreignKey]).create(ada), 'base64url')
    expect(ids.verify(foreign.toString('base64url'))).to.equal(undefined)
    Buffer.from(ids.create(ada), 'base64url').copy(foreign, 1, 1, 3)
    expect(ids.verify(foreign.toString('base64url'))).to.equal(undefined)
  })

  it('is rejected if combined from two ids', () => {
    const mine = Buffer.from(ids.create(ada), 'base64url')
    Buffer.from(ids.create(anonymous), 'base64url').copy(mine, 25, 25, 37)
    expect(ids.verify(mine.toString('base64url'))).to.equal(undefined)
  })
})

describe('Session id secrets', () => {
  it('can be rotated: ids signed with an older secret stay valid for their owner', () => {
    const before = createSessionIds([olderKey]).create(ada, 5)
    const facts = ids.verify(before)
    expect(facts?.createdAt).to.equal(5)
    expect(facts?.isOwnedBy(ada)).to.equal(true)
    expect(facts?.isOwnedBy(anonymous)).to.equal(false)
  })

  it('sign with the first secret only', () => {
    expect(createSessionIds([olderKey]).verify(ids.create(ada))).to.equal(undefined)
    expect(createSessionIds([key]).verify(ids.create(ada))?.isOwnedBy(ada)).to.equal(true)
  })

  it('are required', () => {
    expect(() => createSessionIds([])).to.throw('no key')
  })
})

describe('Session id in the log', () => {
  it('is truncated, without signature and most random bits', () => {
    const [one, two] = [ids.create(ada), ids.create(ada)]
    expect(shortId(one)).to.match(/^[\w-]{12}…$/)
    expect(shortId(one)).not.to.equal(shortId(two))
  })
})
