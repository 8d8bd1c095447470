// The lock beside an audit: one of many takes over what a killed process left, and nobody takes away another's.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { lockFile, lockFirst } from '../../../plugins/audit/file-lock.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'

after(removeFolders)

/** As a process leaves it that was killed: no process has this id. */
const DEAD = JSON.stringify({ pid: 2 ** 22 + 1, machine: hostname() })

const locksIn = async (folder: string) => (await readdir(folder)).filter(name => name.startsWith('a.jsonl'))

describe('audit: its lock', () => {
  it('that a killed process left is taken over by one of many, and nothing else is left', async () => {
    for (let round = 0; round < 20; round++) {
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

  it('is taken over, though who was about to do so was killed, too', async () => {
    const folder = await makeFolder({ 'a.jsonl.lock': DEAD })
    const file = join(folder, 'a.jsonl')
    const guard = createHash('sha256').update(DEAD).digest('hex').slice(0, 16)
    await writeFile(`${file}.lock.${guard}`, DEAD)
    const lock = await lockFile(file)
    await lock.release()
    expect(await locksIn(folder)).to.deep.equal([])
  })

  for (const pid of [-1, 0, 1.5, 2 ** 60, '1']) {
    it(`of ${JSON.stringify(pid)}, which is no process, is taken over`, async () => {
      const folder = await makeFolder({ 'a.jsonl.lock': JSON.stringify({ pid, machine: hostname() }) })
      const lock = await lockFile(join(folder, 'a.jsonl'))
      await lock.release()
      expect(await locksIn(folder)).to.deep.equal([])
    })
  }

  it('where a link to nothing or a folder stands, the start stops, says so and leaves no draft', async () => {
    const folder = await makeFolder({})
    const file = join(folder, 'a.jsonl')
    const told = () =>
      lockFile(file).then(
        () => 'locked',
        (error: unknown) => String(error),
      )
    await symlink(join(folder, 'gone'), `${file}.lock`)
    expect(await told()).to.match(
      /a\.jsonl\.lock is a symbolic link, and stands where the lock of the audit goes: take it/,
    )
    await rm(`${file}.lock`)
    await mkdir(`${file}.lock`)
    expect(await told()).to.match(/a\.jsonl\.lock is no file/)
    expect(await locksIn(folder)).to.deep.equal(['a.jsonl.lock'])
  })

  it('is left alone by who does not hold it any more', async () => {
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
    expect(error).to.match(/is another process's now/)
    await second.release()
  })

  it('is made again, where its folder was removed and made anew', async () => {
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
