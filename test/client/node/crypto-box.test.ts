// Tests the encryption of token files.
import { expect } from 'chai'
import { AuthError } from '../../../client/errors.ts'
import { createCryptoBox, readKey } from '../../../client/node/file-cache.ts'

const KEY = new Uint8Array(32).fill(7)
const box = createCryptoBox(KEY)
const SECRET = 'a refresh token'

function failure(work: () => unknown): AuthError {
  try {
    work()
  } catch (error) {
    if (AuthError.is(error)) return error
    throw error
  }
  throw new Error('it did not fail')
}

describe('Crypto box', () => {
  it('R-98: opens sealed data, which shows none of the plaintext', () => {
    const sealed = box.seal(Buffer.from(SECRET), 'name')
    expect(box.open(sealed, 'name', 'file').toString()).to.equal(SECRET)
    expect(sealed).to.match(/^mcp-host-tokens\.v1\.[\w-]{11}\.[\w-]+\n$/)
    expect(Buffer.from(sealed.split('.')[3] ?? '', 'base64url').includes(SECRET)).to.equal(false)
    expect(box.open(box.seal(new Uint8Array(), 'name'), 'name', 'file')).to.have.length(0)
  })

  it('uses a unique nonce each time', () => {
    const nonces = Array.from({ length: 1_000 }, () =>
      box.seal(Buffer.from(SECRET), 'name').split('.')[3]?.slice(0, 16),
    )
    expect(new Set(nonces).size).to.equal(1_000)
  })

  it('rejects modified or truncated data, and another name', () => {
    const sealed = box.seal(Buffer.from(SECRET), 'name')
    const refuse = (text: string, name = 'name') => {
      expect(failure(() => box.open(text, name, '/the/file'))).to.have.property('code', 'cache_failed')
    }
    for (let at = 0; at < sealed.length; at++) {
      // Not the last bits of base64, which may mean nothing.
      const other = sealed[at] === 'A' ? 'z' : 'A'
      refuse(sealed.slice(0, at) + other + sealed.slice(at + 1))
      refuse(sealed.slice(0, at))
    }
    refuse(`${sealed}x`)
    refuse(sealed, 'another')
    refuse('')
    refuse('{"accessToken":"plain"}')
  })

  it('reports what to do', () => {
    const sealed = box.seal(Buffer.from(SECRET), 'name')
    const changed = failure(() => box.open(sealed, 'another', '/the/file'))
    expect(changed.message).to.include('/the/file').and.include('mcp-host logout').and.include('log in again')
    const other = createCryptoBox(new Uint8Array(32).fill(8))
    const wrongKey = failure(() => other.open(sealed, 'name', '/the/file'))
    expect(wrongKey.code).to.equal('cache_failed')
    expect(wrongKey.message).to.include('another key').and.include('MCP_HOST_TOKEN_KEY').and.include('/the/file')
    expect(wrongKey.message).to.include(box.keyId).and.include(other.keyId)
    const newer = failure(() => box.open(sealed.replace('.v1.', '.v2.'), 'name', '/the/file'))
    expect(newer.message).to.include('mcp-host-tokens.v2')
  })

  it('accepts only keys of 32 bytes, as bytes, base64 or hex', () => {
    const buffer = Buffer.from(KEY)
    for (const form of [KEY, buffer.toString('base64'), buffer.toString('base64url'), `${buffer.toString('hex')}\n`]) {
      expect(Buffer.from(readKey(form, 'key'))).to.deep.equal(buffer)
    }
    for (const form of ['', 'a passphrase', KEY.slice(1), buffer.toString('hex').slice(2), 'x'.repeat(64)]) {
      const error = failure(() => readKey(form, 'MCP_HOST_TOKEN_KEY'))
      expect(error.code).to.equal('invalid_options')
      expect(error.message).to.include('MCP_HOST_TOKEN_KEY').and.include('openssl rand -base64 32')
      if (form.length > 0 && typeof form === 'string') expect(error.message).to.not.include(form)
    }
  })
})
