// Tests the token files: persistence, permissions and errors.
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { expect } from 'chai'
import { AuthError } from '../../../client/errors.ts'
import { createCryptoBox } from '../../../client/node/file-cache.ts'
import { temporaryName } from '../../../client/node/file-lock.ts'
import { createFileTokenCache } from '../../../client/node/index.ts'
import type { TokenContainer } from '../../../client/stores.ts'
import { failure } from '../support/failure.ts'
import { endForks, forkJob } from './support/forks.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

const TOKENS: TokenContainer = {
  v: 1,
  accessToken: 'an-access-token',
  refreshToken: 'a-refresh-token',
  expiresIn: 300,
  obtainedAt: 1_700_000_000_000,
  scope: 'mcp.tools',
  authorizationServer: 'https://login.example',
  clientId: 'a-client',
  clientSecret: 'a-client-secret',
  dpopJwk: { kty: 'EC', d: 'a-private-key' },
}
const context = { key: 'one', label: 'https://mcp.example/ (work)' }
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8)
const hasModes = process.getuid !== undefined

let directory: string
beforeEach(() => {
  directory = join(makeTemporaryDirectory(), 'tokens')
  delete process.env['MCP_HOST_TOKEN_KEY']
})
const environmentKey = process.env['MCP_HOST_TOKEN_KEY']
after(() => {
  if (environmentKey !== undefined) process.env['MCP_HOST_TOKEN_KEY'] = environmentKey
  endForks()
  removeTemporaryDirectories()
})

async function stored(key?: string) {
  const cache = createFileTokenCache(directory, { key })
  await cache.storeTokens(TOKENS, context)
  return cache
}

describe('File token cache', () => {
  it('keeps a container for the next process, only under its key', async () => {
    const cache = await stored()
    expect(await cache.getTokens(context)).to.deep.equal(TOKENS)
    expect(await createFileTokenCache(directory).getTokens(context)).to.deep.equal(TOKENS)
    expect(await cache.getTokens({ key: 'two' })).to.equal(undefined)
    await cache.storeTokens({ v: 1, accessToken: 'newer' }, context)
    expect(await cache.getTokens(context)).to.deep.equal({ v: 1, accessToken: 'newer' })
    await cache.deleteTokens(context)
    await cache.deleteTokens(context)
    expect(await cache.getTokens(context)).to.equal(undefined)
  })

  it('creates no files before the first store', async () => {
    const cache = createFileTokenCache(directory)
    expect(await cache.getTokens(context)).to.equal(undefined)
    expect(await cache.list()).to.deep.equal([])
    await cache.deleteTokens(context)
    expect(() => statSync(directory)).to.throw('ENOENT')
  })

  it('R-98: creates the directory with mode 0700 and files with 0600, encrypted', async function () {
    await stored()
    const files = readdirSync(directory)
    expect(files.sort()).to.deep.equal(['one.tokens', 'token.key'])
    for (const file of files) {
      const content = readFileSync(join(directory, file), 'latin1')
      expect(content).to.not.match(/an-access-token|a-refresh-token|mcp\.example|login\.example/)
    }
    if (!hasModes) this.skip()
    expect(mode(directory)).to.equal('700')
    for (const file of files) expect(mode(join(directory, file)), file).to.equal('600')
  })

  it('R-98: rejects looser permissions, and prints the chmod command', async function () {
    if (!hasModes) this.skip()
    const cache = await stored()
    for (const [path, loose, tight] of [
      [directory, 0o750, 0o700],
      [join(directory, 'one.tokens'), 0o640, 0o600],
      [join(directory, 'token.key'), 0o604, 0o600],
    ] as const) {
      chmodSync(path, loose)
      const fresh = createFileTokenCache(directory)
      const error = await failure(fresh.getTokens(context))
      expect(error.code).to.equal('cache_failed')
      expect(error.message)
        .to.include(`mode ${loose.toString(8)}`)
        .and.include(`chmod ${tight.toString(8)} '${path}'`)
      chmodSync(path, tight)
      expect(await fresh.getTokens(context)).to.deep.equal(TOKENS)
    }
    chmodSync(directory, 0o755)
    for (const work of [
      () => cache.storeTokens(TOKENS, context),
      () => cache.deleteTokens(context),
      () => cache.list(),
      () => cache.withLock(context, async () => 0),
      () => cache.leaseLogin(context),
    ]) {
      expect((await failure(work())).message).to.include('chmod 700')
    }
  })

  it('R-98: rejects symbolic links', async function () {
    if (!hasModes) this.skip()
    const cache = await stored()
    const file = join(directory, 'one.tokens')
    renameSync(file, `${file}.moved`)
    symlinkSync(`${file}.moved`, file)
    expect((await failure(cache.getTokens(context))).message)
      .to.include('symbolic link')
      .and.include(file)
    const link = `${directory}-link`
    symlinkSync(directory, link)
    const error = await failure(createFileTokenCache(link).storeTokens(TOKENS, context))
    expect(error.message).to.include('is a link').and.include(link)
  })

  it('R-98: rejects files of another user', async function () {
    // Only root can give a file away.
    if (process.getuid?.() !== 0) this.skip()
    const cache = await stored()
    chownSync(join(directory, 'one.tokens'), 12_345, 12_345)
    expect((await failure(cache.getTokens(context))).message).to.match(/12345/)
    chownSync(directory, 12_345, 12_345)
    expect((await failure(cache.storeTokens(TOKENS, context))).message).to.match(/12345/)
  })

  it('R-85: rejects keys with path traversal', async () => {
    const cache = await stored()
    for (const key of ['', '../one', 'a/b', 'one.tokens', 'a\0b', 'x'.repeat(129)]) {
      expect((await failure(cache.getTokens({ key }))).code).to.equal('invalid_options')
      expect((await failure(cache.storeTokens(TOKENS, { key }))).code).to.equal('invalid_options')
      expect((await failure(cache.withLock({ key }, async () => 0))).code).to.equal('invalid_options')
    }
  })

  it('R-98: reports a modified, truncated or swapped file, with advice', async () => {
    const cache = await stored()
    const file = join(directory, 'one.tokens')
    const whole = readFileSync(file, 'latin1')
    await cache.storeTokens({ v: 1, accessToken: 'of another server' }, { key: 'two' })
    for (const content of [
      '',
      whole.slice(0, -20),
      whole.replace(/.\n$/, '!\n'),
      readFileSync(join(directory, 'two.tokens')),
    ]) {
      writeFileSync(file, content)
      const error = await failure(cache.getTokens(context))
      expect(error.code).to.equal('cache_failed')
      expect(error.message).to.include(file).and.include('mcp-host logout')
    }
    await cache.deleteTokens(context)
    expect(await cache.getTokens(context)).to.equal(undefined)
    writeFileSync(file, 'damaged', { mode: 0o600 })
    await cache.storeTokens(TOKENS, context)
    expect(await cache.getTokens(context)).to.deep.equal(TOKENS)
  })

  it('R-98: does not read an oversized file', async () => {
    const cache = await stored()
    writeFileSync(join(directory, 'one.tokens'), Buffer.alloc(1024 * 1024 + 1))
    expect((await failure(cache.getTokens(context))).message).to.include('larger than 1 MiB')
  })

  it('uses a given key or the environment key, without a key file', async () => {
    const key = Buffer.alloc(32, 3).toString('base64')
    await stored(key)
    expect(readdirSync(directory)).to.deep.equal(['one.tokens'])
    process.env['MCP_HOST_TOKEN_KEY'] = key
    const cache = createFileTokenCache(directory)
    expect(await cache.getTokens(context)).to.deep.equal(TOKENS)
    const other = createFileTokenCache(directory, { key: Buffer.alloc(32, 4) })
    const error = await failure(other.getTokens(context))
    expect(error.code).to.equal('cache_failed')
    expect(error.message).to.include('another key').and.include('MCP_HOST_TOKEN_KEY')
    process.env['MCP_HOST_TOKEN_KEY'] = 'short'
    expect(() => createFileTokenCache(directory)).to.throw(AuthError, 'MCP_HOST_TOKEN_KEY is not a key')
  })

  it('reports a missing or damaged key file', async () => {
    await stored()
    const path = join(directory, 'token.key')
    writeFileSync(path, 'damaged')
    const damaged = await failure(createFileTokenCache(directory).getTokens(context))
    expect(damaged.code).to.equal('cache_failed')
    expect(damaged.message).to.include(path).and.include('damaged')
    rmSync(path)
    const gone = await failure(createFileTokenCache(directory).getTokens(context))
    expect(gone.message).to.include(path).and.include('log in again')
    await stored()
    expect(await createFileTokenCache(directory).getTokens(context)).to.deep.equal(TOKENS)
  })

  it('reports a file of a newer version', async () => {
    const key = Buffer.alloc(32, 3)
    const cache = createFileTokenCache(directory, { key })
    await cache.storeTokens(TOKENS, context)
    const content = JSON.stringify({ tokens: { v: 2 } })
    writeFileSync(join(directory, 'one.tokens'), createCryptoBox(key).seal(Buffer.from(content), 'one'))
    const error = await failure(cache.getTokens(context))
    expect(error.code).to.equal('cache_failed')
    expect(error.message)
      .to.match(/one\.tokens/)
      .and.include('mcp-host logout')
  })

  it('reports a directory that cannot be created, with advice', async () => {
    writeFileSync(`${directory}-file`, '')
    const error = await failure(createFileTokenCache(join(`${directory}-file`, 'tokens')).storeTokens(TOKENS, context))
    expect(error.code).to.equal('cache_failed')
    expect(error.message).to.include('ENOTDIR').and.include('writable')
  })

  it('lists containers without secrets, and unreadable files', async () => {
    const cache = await stored()
    await cache.storeTokens(
      { v: 1, registration: { issuer: 'https://as.example', clientId: 'c', dynamic: true } },
      { key: 'two' },
    )
    writeFileSync(join(directory, 'three.tokens'), 'damaged', { mode: 0o600 })
    const [one, three, two] = await cache.list()
    expect(one).to.include({ key: 'one', label: context.label, hasAccessToken: true, hasRefreshToken: true })
    expect(one).to.include({ authorizationServer: 'https://login.example', scope: 'mcp.tools', expiresIn: 300 })
    expect(two).to.include({
      key: 'two',
      label: undefined,
      hasAccessToken: false,
      hasRefreshToken: false,
      clientId: 'c',
    })
    expect(three?.error?.message).to.include('three.tokens')
    const shown = inspect(await cache.list(), { depth: 9 })
    for (const secret of ['an-access-token', 'a-refresh-token', 'a-client-secret', 'a-private-key']) {
      expect(shown).to.not.include(secret)
    }
  })

  it('removes only temporary files of killed processes', async () => {
    const holder = forkJob({ type: 'hold', path: join(makeTemporaryDirectory(), 'lock') })
    await holder.next()
    await holder.kill()
    await stored()
    const dead = temporaryName('one.tokens').replace(/\.\d+\.(\d+)\.([\w-]{12})$/, `.${holder.pid}.$1.$2`)
    const alive = temporaryName('one.tokens')
    const elsewhere = temporaryName('one.tokens').replace(/tmp\.[\w-]{16}/, 'tmp.AnotherMachine_0')
    for (const name of [dead, alive, elsewhere]) writeFileSync(join(directory, name), 'half')
    mkdirSync(join(directory, dead.replace('tokens', 'lock')))
    await stored()
    expect(readdirSync(directory).sort()).to.deep.equal([alive, elsewhere, 'one.tokens', 'token.key'].sort())
  })

  it('R-98: concurrent readers in one process see complete containers', async () => {
    const cache = await stored()
    const writes = Array.from({ length: 50 }, (_, index) =>
      cache.storeTokens({ v: 1, accessToken: `${index}`, refreshToken: 'x'.repeat(index * 500) }, context),
    )
    const reads = Array.from({ length: 50 }, () => cache.getTokens(context))
    for (const read of await Promise.all(reads)) expect(read?.accessToken).to.be.a('string')
    await Promise.all(writes)
    expect(readdirSync(directory).sort()).to.deep.equal(['one.tokens', 'token.key'])
  })
})
