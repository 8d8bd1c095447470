// processes that share one rotating refresh token never lose it, and what the lock is for.
import { expect } from 'chai'
import { stopServers } from './support/fake-servers.ts'
import { shareLogin } from './support/shared-login.ts'

afterEach(stopServers)

it('R-80: 4 processes that need a new token at once make one refresh a round', async function () {
  this.timeout(120_000)
  const seen = await shareLogin({ processes: 4, rounds: 25, locked: true })
  console.log(`      ${JSON.stringify(seen)}`)
  expect(seen.reuses).to.equal(0)
  expect(seen.roundsByRefreshes).to.deep.equal({ 1: 25 })
  expect(seen.answers).to.deep.equal({ 200: 100 })
})

it('R-80: without the lock the same processes use a refresh token twice', async function () {
  this.timeout(120_000)
  const seen = await shareLogin({ processes: 4, rounds: 200, locked: false })
  console.log(`      ${JSON.stringify(seen)}`)
  expect(seen.reuses).to.be.greaterThan(0)
})
