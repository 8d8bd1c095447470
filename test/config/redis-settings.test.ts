// Tests validation of the `redis` config section without password leaks.
import { expect } from 'chai'
import { check } from './checked.ts'

const BASE = { server: { name: 'a', version: '1' }, toolsets: { none: [] }, routes: { '/': { toolsets: 'none' } } }
const PASSWORD = 'p@ss-word-7'

describe('Redis config', () => {
  for (const [what, redis, expected] of [
    ['a scheme that is not Redis', { url: `http://mcp:${PASSWORD}@127.0.0.1` }, "'rediss://' for TLS"],
    ['an invalid URL', { url: `//mcp:${PASSWORD}@127.0.0.1` }, "'rediss://' for TLS"],
    ['a database with a name', { url: `redis://mcp:${PASSWORD}@127.0.0.1/main` }, "'rediss://' for TLS"],
    ['a node that is no URL', { cluster: [`mcp:${PASSWORD}@127.0.0.1//x:${PASSWORD}@y`] }, "'rediss://' for TLS"],
    ['a password that is no string', { url: 'redis://a', password: [PASSWORD] }, 'a string'],
    ['a prefix that would break hash tags', { url: 'redis://a', keyPrefix: '{a}' }, 'a string'],
    ['a duration without a unit', { url: 'redis://a', commandTimeout: '5' }, 'a duration'],
    ['a key that it has not', { url: 'redis://a', pasword: PASSWORD }, 'password'],
    ['nothing at all', {}, 'url'],
  ] as const) {
    it(`rejects ${what} without printing a password`, () => {
      const problems = JSON.stringify(check({ ...BASE, redis }))
      expect(problems).to.include('redis').and.include(expected)
      expect(problems).to.not.include('ss-word-7')
    })
  }

  it('accepts a URL with user, password and database', () => {
    for (const url of [
      'redis://127.0.0.1',
      'rediss://mcp:p%40ss@[::1]:6380/0',
      'redis://:secret@redis.internal:6379/12',
    ]) {
      expect(check({ ...BASE, redis: { url } })).to.deep.equal([])
    }
  })
})
