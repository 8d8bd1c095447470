// Tests that SIGKILL during a write never loses acknowledged tokens; use `SEED=7` to repeat a run.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { createFileTokenCache } from '../../../client/node/file-cache.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { endForks } from './support/forks.ts'
import { killWriters } from './support/kill-writers.ts'
import { makeTemporaryDirectory, removeTemporaryDirectories } from './support/temporary-directory.ts'

after(() => {
  endForks()
  removeTemporaryDirectories()
})

it('R-98: SIGKILL during a store keeps the last acknowledged token or a newer one', async () => {
  const directory = join(makeTemporaryDirectory(), 'tokens')
  const enough = { kills: 12, left: 2, most: 250 }
  const counts = await killWriters(directory, enough, createSeededRandom(Number(process.env['SEED'] ?? 98)))
  expect(counts).to.include({ unreadable: 0, older: 0 })
  expect(counts.leftFile, 'kills between opening and renaming').to.be.at.least(enough.left)
  expect(counts.leftLock, 'kills of the lock holder').to.be.at.least(enough.left)
  await createFileTokenCache(directory).storeTokens({ v: 1, accessToken: 'last' }, { key: 'last' })
  expect(readdirSync(directory).filter(name => name.includes('.tmp.'))).to.deep.equal([])
})
