// Tests the lock between processes: mutual exclusion and takeover from dead holders.
import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { rename, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import {
  acquireFileLock,
  checkOwner,
  createOwnerName,
  tryFileLock,
  waitForFileLock,
  withFileLock,
} from '../../../client/node/file-lock.ts'
import { eventually } from '../../support/eventually.ts'
import { failure } from '../support/failure.ts'
import { countTogether } from './support/counting-processes.ts'
import { endForks, forkJob } from './support/forks.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

after(() => {
  endForks()
  removeTemporaryDirectories()
})

/** A lock as its holder left it, under a name of its own. */
function plant(path: string, owner: string): void {
  mkdirSync(path)
  writeFileSync(join(path, owner), '')
}

/** A name like ours with another part: the machine (0), the process (1) or its start (2). */
function otherOwner(part: 0 | 1 | 2, value: string): string {
  const parts = createOwnerName().split('.')
  parts[part] = value
  return parts.join('.')
}

const elsewhere = () => otherOwner(0, 'AnotherMachine_0')
const FAST = { poll: 10, heartbeat: 10, stale: 100 }

/** Waits for the holder, and counts how often the lock was checked. */
function watchLock(path: string) {
  let checks = 0
  const signal = Object.assign(new AbortController().signal, { throwIfAborted: () => void checks++ })
  return { freed: waitForFileLock(path, { timing: FAST, signal }), checks: () => checks }
}

describe('File lock', () => {
  it('R-80: serialises holders in one process', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    let inside = 0
    let done = 0
    await Promise.all(
      Array.from({ length: 20 }, () =>
        withFileLock(path, async () => {
          expect(++inside).to.equal(1)
          await new Promise(setImmediate)
          inside--
          done++
        }),
      ),
    )
    expect(done).to.equal(20)
    expect(readdirSync(join(path, '..')), 'nothing is left').to.deep.equal([])
  })

  it('returns the result of the work, and is released after an error', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    expect(await withFileLock(path, async () => 7)).to.equal(7)
    const thrown = new Error('the work failed')
    const caught = await withFileLock(path, () => Promise.reject(thrown)).catch(error => error)
    expect(caught).to.equal(thrown)
    expect(await tryFileLock(path)).to.not.equal(undefined)
  })

  it('R-80: fails with a temporary error that names the holder after the timeout', async () => {
    const directory = makeTemporaryDirectory()
    const path = join(directory, 'lock')
    const lock = await acquireFileLock(path)
    const error = await failure(withFileLock(path, async () => 0, { timing: { wait: 30 } }))
    expect(error).to.include({ code: 'temporarily_unavailable', retryable: true })
    expect(error.message).to.include(`held by process ${process.pid}`).and.include(path)
    expect(readdirSync(directory), 'what was prepared is gone').to.deep.equal(['lock'])
    await lock.release()
  })

  it('stops waiting on abort, with the reason', async () => {
    const directory = makeTemporaryDirectory()
    const path = join(directory, 'lock')
    const lock = await acquireFileLock(path)
    const abort = new AbortController()
    const waiting = acquireFileLock(path, { signal: abort.signal }).catch(error => error)
    const reason = new Error('the caller went away')
    abort.abort(reason)
    expect(await waiting).to.equal(reason)
    expect(readdirSync(directory)).to.deep.equal(['lock'])
    await lock.release()
  })

  it('is taken over immediately from a killed process', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const holder = forkJob({ type: 'hold', path })
    expect(await holder.next()).to.deep.equal({ held: true })
    expect(await tryFileLock(path), 'while it lives').to.equal(undefined)
    await holder.kill()
    expect(await tryFileLock(path)).to.not.equal(undefined)
  })

  it('is taken over immediately if the process id was reused', async function () {
    if (process.platform !== 'linux') this.skip()
    const path = join(makeTemporaryDirectory(), 'lock')
    plant(path, otherOwner(2, '1'))
    expect(await tryFileLock(path)).to.not.equal(undefined)
  })

  it('is not taken over from a living process, even if it was suspended', async function () {
    if (process.platform !== 'linux') this.skip()
    const path = join(makeTemporaryDirectory(), 'lock')
    const holder = forkJob({ type: 'hold', path })
    expect(await holder.next()).to.deep.equal({ held: true })
    process.kill(holder.pid, 'SIGSTOP')
    for (const file of readdirSync(path)) utimesSync(join(path, file), 0, 0)
    const error = await failure(acquireFileLock(path, { timing: { ...FAST, wait: 500 } }))
    expect(error.code, 'watched for longer than `stale`').to.equal('temporarily_unavailable')
    await holder.kill()
  })

  it('is taken over from an ended worker thread of this process after a longer silence', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const owner = createOwnerName()
    plant(path, owner)
    expect(await tryFileLock(path, { timing: FAST })).to.equal(undefined)
    utimesSync(join(path, owner), 0, 0)
    await (await acquireFileLock(path, { timing: FAST })).release()
  })

  it('counts as released if only its empty directory remains', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const owner = createOwnerName()
    plant(path, owner)
    const { freed, checks } = watchLock(path)
    await eventually('the lock is seen', () => checks() > 0)
    rmSync(join(path, owner))
    expect(await freed).to.equal(false)
  })

  it('is taken over from another machine only after its heartbeat expires', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const owner = elsewhere()
    plant(path, owner)
    // By this machine's clock the holder is long silent; clocks differ, so that counts for nothing.
    utimesSync(join(path, owner), 0, 0)
    expect(checkOwner(owner)).to.equal('unknown')
    expect(await tryFileLock(path, { timing: FAST })).to.equal(undefined)
    await (await acquireFileLock(path, { timing: FAST })).release()
  })

  it('is not taken over from another machine with a current heartbeat', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const owner = elsewhere()
    plant(path, owner)
    let beats = 0
    const beating = setInterval(() => utimesSync(join(path, owner), ++beats, beats), 10)
    const error = await failure(acquireFileLock(path, { timing: { ...FAST, stale: 200, wait: 1_000 } }))
    clearInterval(beating)
    expect(error.code).to.equal('temporarily_unavailable')
    expect(beats).to.be.greaterThan(5)
  })

  it('updates its heartbeat while held', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const lock = await acquireFileLock(path, { timing: FAST })
    const [owner = ''] = readdirSync(path)
    utimesSync(join(path, owner), 0, 0)
    await eventually('a heartbeat', () => statSync(join(path, owner)).mtimeMs)
    await lock.release()
  })

  it('R-80: a late takeover cannot remove the lock of a new holder', async () => {
    const directory = makeTemporaryDirectory()
    const path = join(directory, 'lock')
    const dead = otherOwner(1, '4194305')
    plant(path, dead)
    expect(checkOwner(dead)).to.equal('dead')
    const first = await acquireFileLock(path)
    // What another process does that judged the dead owner before the lock was taken over.
    expect(await unlink(join(path, dead)).catch(error => error.code)).to.equal('ENOENT')
    plant(join(directory, 'prepared'), createOwnerName())
    expect(await rename(join(directory, 'prepared'), path).catch(error => error.code)).to.be.oneOf([
      'ENOTEMPTY',
      'EEXIST',
    ])
    expect(await tryFileLock(path)).to.equal(undefined)
    await first.release()
  })

  it('a holder that lost the lock does not release the next holder', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const slow = await acquireFileLock(path)
    for (const owner of readdirSync(path)) await unlink(join(path, owner))
    const next = await acquireFileLock(path)
    await slow.release()
    expect(await tryFileLock(path)).to.equal(undefined)
    await next.release()
    await next.release()
    expect(await tryFileLock(path)).to.not.equal(undefined)
  })

  it('notifies a waiter when the holder releases, dies or is replaced', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    expect(await waitForFileLock(path)).to.equal(false)
    const lock = await acquireFileLock(path)
    const freed = waitForFileLock(path, { timing: FAST })
    await lock.release()
    expect(await freed).to.equal(false)
    plant(path, elsewhere())
    expect(await waitForFileLock(path, { timing: FAST })).to.equal(true)
    expect(await tryFileLock(path), 'the silent one is out').to.not.equal(undefined)
    plant(`${path}2`, otherOwner(1, '4194305'))
    expect(await waitForFileLock(`${path}2`, { timing: FAST })).to.equal(true)
    const abort = new AbortController()
    const waiting = waitForFileLock(path, { signal: abort.signal }).catch(error => error)
    abort.abort('enough')
    expect(await waiting).to.equal('enough')
  })

  it('does not report a release as abandoned between its two steps', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    const owner = createOwnerName()
    plant(path, owner)
    const { freed, checks } = watchLock(path)
    await eventually('the lock is seen', () => checks() > 0)
    await unlink(join(path, owner))
    const late = waitForFileLock(path, { timing: FAST })
    const seen = checks()
    await Promise.race([freed, eventually('its release is seen', () => checks() > seen + 4)])
    await rmdir(path)
    expect([await freed, await late]).to.deep.equal([false, false])
  })

  it('reports an unusable path, with advice', async () => {
    const path = join(makeTemporaryDirectory(), 'lock')
    writeFileSync(path, 'a file')
    const error = await failure(acquireFileLock(path))
    expect(error.code).to.equal('cache_failed')
    expect(error.message).to.include(path).and.include('remove')
  })
})

describe('File lock with 4 processes', () => {
  it('R-80: loses no increments; without the lock some are lost', async () => {
    const options = { processes: 4, rounds: 50 }
    const locked = await countTogether({ ...options, directory: makeTemporaryDirectory(), locked: true })
    const open = await countTogether({ ...options, directory: makeTemporaryDirectory(), locked: false })
    expect(locked).to.deep.equal({ counter: locked.expected, expected: 200, met: 0 })
    expect(open.counter).to.be.lessThan(open.expected)
  })

  it('R-80: one process wins a concurrent takeover from a dead holder', async () => {
    const directory = makeTemporaryDirectory()
    let dead = 0
    const counted = await countTogether({
      directory,
      processes: 4,
      rounds: 50,
      locked: true,
      beforeRound: () => plant(join(directory, 'lock'), otherOwner(1, String(4_194_305 + dead++))),
    })
    expect(counted).to.deep.equal({ counter: counted.expected, expected: 200, met: 0 })
  })
})
