// The audit file lock: stale locks, concurrent takeover and release.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { lockFile, lockFirst } from '../../../plugins/audit/file-lock.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { caseCount } from '../../support/thorough.ts'

after(removeFolders)

/** As a process leaves it that was killed: no process has this id. */
const DEAD = JSON.stringify({ pid: 2 ** 22 + 1, machine: hostname() })

const locksIn = async (folder: string) => (await readdir(folder)).filter(name => name.startsWith('a.jsonl'))

describe('audit: file lock', () => {
  it('takes over a stale lock of a killed process with exactly one winner', async () => {
    for (let round = 0; round < caseCount(20, 5); round++) {
      const folder = await makeFolder({ 'a.jsonl.lock': DEAD })
      const file = join(folder, 'a.jsonl')
      const taken = await Promise.allSettled(Array.from({ length: 8 }, () => lockFile(file)))
      const locks = taken.flatMap(one => (one.status === 'fulfilled' ? one.value : []))
      // One, unless each of them found another at it.
      expect(locks.length, `round ${round}`).to.be.at.most(1)
      const lock = locks[0] ?? (await lockFile(file))
      expect(await locksIn(folder)).to.deep.equal(['a.jsonl.lock'])
      await lock.release()
      expect(await locksIn(folder)).to.deep.equal([])
    }
  })

  it('takes over a stale lock after a process was killed during takeover', async () => {
    const folder = await makeFolder({ 'a.jsonl.lock': DEAD })
    const file = join(folder, 'a.jsonl')
    const guard = createHash('sha256').update(DEAD).digest('hex').slice(0, 16)
    await writeFile(`${file}.lock.${guard}`, DEAD)
    const lock = await lockFile(file)
    await lock.release()
    expect(await locksIn(folder)).to.deep.equal([])
  })

  for (const pid of [-1, 0, 1.5, 2 ** 60, '1']) {
    it(`takes over a lock with the invalid pid ${JSON.stringify(pid)}`, async () => {
      const folder = await makeFolder({ 'a.jsonl.lock': JSON.stringify({ pid, machine: hostname() }) })
      const lock = await lockFile(join(folder, 'a.jsonl'))
      await lock.release()
      expect(await locksIn(folder)).to.deep.equal([])
    })
  }

  it('fails startup if the lock is a dangling link or a folder, and leaves no temporary file', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'a.jsonl')
    const told = () =>
      lockFile(file).then(
        () => 'locked',
        (error: unknown) => String(error),
      )
    await symlink(join(folder, 'gone'), `${file}.lock`)
    expect(await told()).to.match(/a\.jsonl\.lock/)
    await rm(`${file}.lock`)
    await mkdir(`${file}.lock`)
    expect(await told()).to.match(/a\.jsonl\.lock/)
    expect(await locksIn(folder)).to.deep.equal(['a.jsonl.lock'])
  })

  it('does not remove a lock that another process holds', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'a.jsonl')
    const first = await lockFile(file)
    await rm(`${file}.lock`)
    const second = await lockFile(file)
    await first.release()
    expect(existsSync(`${file}.lock`)).to.equal(true)
    const error = await first.hold().then(
      () => undefined,
      (thrown: unknown) => String(thrown),
    )
    expect(error).to.match(/now belongs to another process/)
    await second.release()
  })

  it('creates the lock again after its folder was removed and created again', async () => {
    const folder = join(await makeFolder({}), 'logs')
    await mkdir(folder)
    const { lock } = await lockFirst([join(folder, 'a.jsonl')])
    const text = await readFile(join(folder, 'a.jsonl.lock'), 'utf8')
    await rm(folder, { recursive: true })
    await mkdir(folder)
    await lock.hold()
    expect(await readFile(join(folder, 'a.jsonl.lock'), 'utf8')).to.equal(text)
    await lock.release()
  })
})
