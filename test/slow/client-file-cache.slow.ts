// Tests the token file cache: hundreds of processes killed during writes, and long races for one lock. Partly seeded:
// `SEED=7 npx mocha 'test/slow/client-file-cache.slow.ts'`.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTokenCache } from '../../client/node/file-cache.ts'
import { nameOwner } from '../../client/node/lock-owner.ts'
import { countTogether } from '../client/node/support/counting-processes.ts'
import { endForks } from '../client/node/support/forks.ts'
import { killWriters } from '../client/node/support/kill-writers.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from '../client/node/support/temporary-directory.ts'
import { createSeededRandom } from '../support/seeded-random.ts'
import { sideBySide } from '../support/side-by-side.ts'

const KILLS = 250
const ROUNDS = 500
const PROCESSES = 4
const SEED = Number(process.env['SEED'] ?? 20_261_121)

after(() => {
  endForks()
  removeTemporaryDirectories()
})

describe('file token cache under load', function () {
  this.timeout(600_000)
  const it = sideBySide()

  it(`R-98: ${KILLS} SIGKILLs during writes leave the last acknowledged token or a newer one`, async () => {
    const directory = join(makeTemporaryDirectory(), 'tokens')
    const counts = await killWriters(directory, KILLS, createSeededRandom(SEED))
    console.log(`      seed ${SEED}: ${JSON.stringify(counts)}`)
    expect(counts).to.include({ kills: KILLS, unreadable: 0, older: 0 })
    expect(counts.leftFile, 'kills between opening and renaming').to.be.greaterThan(0)
    expect(counts.leftLock, 'kills of the one with the lock').to.be.greaterThan(0)
    await createFileTokenCache(directory).storeTokens({ v: 1, accessToken: 'last' }, { key: 'last' })
    expect(readdirSync(directory).filter(name => name.includes('.tmp.'))).to.deep.equal([])
  })

  it(`R-80: ${PROCESSES} processes, ${ROUNDS} rounds: mutual exclusion with a free lock and a stale lock`, async () => {
    for (const dead of [false, true]) {
      const directory = makeTemporaryDirectory()
      let planted = 0
      const plant = () => {
        const owner = nameOwner().split('.')
        owner[1] = String(4_194_305 + planted++)
        mkdirSync(join(directory, 'lock'))
        writeFileSync(join(directory, 'lock', owner.join('.')), '')
      }
      const counted = await countTogether({
        directory,
        processes: PROCESSES,
        rounds: ROUNDS,
        locked: true,
        ...(dead ? { beforeRound: plant } : {}),
      })
      expect(counted).to.deep.equal({ counter: PROCESSES * ROUNDS, expected: PROCESSES * ROUNDS, met: 0 })
    }
  })
})
