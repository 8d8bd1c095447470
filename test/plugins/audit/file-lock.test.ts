// The audit file lock: stale locks, concurrent takeover and release.
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { nameOwner, temporaryName } from '../../../client/node/file-lock.ts'
import { lockFile, lockFirst } from '../../../plugins/audit/file-lock.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { rejectionOf } from '../../fixtures/rejection-of.ts'

after(removeFolders)

/** The owner of a killed process: no process has this id. */
const nameDead = () => nameOwner().replace(/\.\d+\./, `.${2 ** 22 + 1}.`)
const ELSEWHERE = 'another-machine1.1.1.abcdefghijkl'

async function leaveLock(folder: string, owner: string): Promise<string> {
  const file = join(folder, 'a.jsonl')
  await mkdir(`${file}.lock`)
  await writeFile(join(`${file}.lock`, owner), '')
  return file
}

const locksIn = async (folder: string) => (await readdir(folder)).filter(name => name.startsWith('a.jsonl'))

describe('audit: file lock', () => {
  it('takes over a stale lock of a killed process with exactly one winner', async () => {
    for (let round = 0; round < 20; round++) {
      const folder = await makeFolder({})
      const file = await leaveLock(folder, nameDead())
      const taken = await Promise.allSettled(Array.from({ length: 8 }, () => lockFile(file)))
      const locks = taken.flatMap(one => (one.status === 'fulfilled' ? one.value : []))
      expect(locks.length, `round ${round}`).to.equal(1)
      expect(await locksIn(folder)).to.deep.equal(['a.jsonl.lock'])
      await locks[0]?.release()
      expect(await locksIn(folder)).to.deep.equal([])
    }
  })

  it('takes over a stale lock after a process was killed during takeover', async () => {
    const folder = await makeFolder({})
    const file = await leaveLock(folder, nameDead())
    await mkdir(temporaryName(`${file}.lock`, nameDead()))
    const lock = await lockFile(file)
    await lock.release()
    expect(await locksIn(folder)).to.not.include('a.jsonl.lock')
  })

  it('of another machine is taken over 60 s after its last heartbeat', async () => {
    const folder = await makeFolder({})
    const file = await leaveLock(folder, ELSEWHERE)
    expect(await rejectionOf(lockFile(file))).to.have.property('code', 'MH2202')
    const past = Date.now() / 1_000 - 90
    await utimes(join(`${file}.lock`, ELSEWHERE), past, past)
    await (await lockFile(file)).release()
    expect(await locksIn(folder)).to.deep.equal([])
  })

  it('fails startup if the lock is a dangling link, a file of an older version or a folder', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'a.jsonl')
    for (const leave of [
      () => symlink(join(folder, 'gone'), `${file}.lock`),
      () => writeFile(`${file}.lock`, '{"pid":1}'),
      () => mkdir(join(`${file}.lock`, 'files'), { recursive: true }),
    ]) {
      await leave()
      const error = await rejectionOf(lockFile(file))
      expect(error).to.have.property('code', 'MH2202')
      expect(String(error)).to.match(/a\.jsonl/)
      expect(await locksIn(folder)).to.deep.equal(['a.jsonl.lock'])
      await rm(`${file}.lock`, { recursive: true })
    }
  })

  it('does not remove a lock that another process holds', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'a.jsonl')
    const first = await lockFile(file)
    await rm(`${file}.lock`, { recursive: true })
    const second = await lockFile(file)
    const error = await rejectionOf(first.hold())
    expect(String(error)).to.match(/belongs to another process/)
    await first.release()
    expect(existsSync(`${file}.lock`)).to.equal(true)
    await second.hold()
    await second.release()
  })

  it('creates the lock again after its folder was removed and created again', async () => {
    const folder = join(await makeFolder({}), 'logs')
    await mkdir(folder)
    const { lock } = await lockFirst([join(folder, 'a.jsonl')])
    const owners = await readdir(join(folder, 'a.jsonl.lock'))
    await rm(folder, { recursive: true })
    await mkdir(folder)
    await lock.hold()
    expect(await readdir(join(folder, 'a.jsonl.lock'))).to.deep.equal(owners)
    await lock.release()
  })

  it('is not created again after the release', async () => {
    const folder = await makeFolder({})
    const lock = await lockFile(join(folder, 'a.jsonl'))
    await rm(join(folder, 'a.jsonl.lock'), { recursive: true })
    const held = lock.hold()
    await lock.release()
    await held
    expect(await locksIn(folder)).to.deep.equal([])
  })
})
