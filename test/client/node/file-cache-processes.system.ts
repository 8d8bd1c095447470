// Tests token files shared by several processes: key file, locks and login lease.
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTokenCache } from '../../../client/node/index.ts'
import { endForks, forkJob } from './support/forks.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

let directory: string
beforeEach(() => {
  directory = join(makeTemporaryDirectory(), 'tokens')
})
after(() => {
  endForks()
  removeTemporaryDirectories()
})

describe('File token cache with several processes', () => {
  it('creates one key file for concurrent starts', async () => {
    const names = ['a', 'b', 'c', 'd']
    const forks = names.map(key => forkJob({ type: 'first', directory, key }))
    for (const forked of forks) await forked.next()
    for (const forked of forks) forked.go()
    for (const forked of forks) await forked.next()
    const cache = createFileTokenCache(directory)
    for (const key of names) expect((await cache.getTokens({ key }))?.accessToken).to.equal(key)
  })

  it('R-80: locks each container independently', async () => {
    const cache = createFileTokenCache(directory)
    const seen = await cache.withLock({ key: 'one' }, () => cache.withLock({ key: 'two' }, async () => 'both'))
    expect(seen).to.equal('both')
    const throwing = cache.withLock({ key: 'one' }, async () => {
      throw new Error('of the work')
    })
    expect((await throwing.catch(error => error)).message).to.equal('of the work')
    expect(await cache.withLock({ key: 'one' }, async () => 'free')).to.equal('free')
  })

  it('R-80: a login lease excludes other processes, independently of the refresh lock', async () => {
    const cache = createFileTokenCache(directory)
    const login = { key: 'login' }
    const holder = forkJob({ type: 'lease', directory })
    expect(await holder.next()).to.deep.equal({ held: true })
    const lease = await cache.leaseLogin(login)
    if (lease.held) throw new Error('two have it')
    expect(await cache.withLock(login, async () => 'refreshed')).to.equal('refreshed')
    const abort = new AbortController()
    const waiting = lease.wait(abort.signal).catch(error => error)
    abort.abort('login timeout')
    expect(await waiting).to.equal('login timeout')
    const freed = lease.wait(new AbortController().signal)
    holder.go()
    await freed
    const ours = await cache.leaseLogin(login)
    if (!ours.held) throw new Error('nobody has it')
    await ours.release()
  })

  it('R-80: a login lease ends with its process, even after SIGKILL', async () => {
    const cache = createFileTokenCache(directory)
    const holder = forkJob({ type: 'lease', directory })
    expect(await holder.next()).to.deep.equal({ held: true })
    const lease = await cache.leaseLogin({ key: 'login' })
    if (lease.held) throw new Error('two have it')
    const freed = lease.wait(new AbortController().signal)
    await holder.kill()
    await freed
    expect((await cache.leaseLogin({ key: 'login' })).held).to.equal(true)
  })
})
