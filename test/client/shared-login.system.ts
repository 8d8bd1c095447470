// Tests that processes with a shared rotating refresh token never lose it.
import { expect } from 'chai'
import { stopServers } from './support/fake-servers.ts'
import { shareLogin } from './support/shared-login.ts'

afterEach(stopServers)

it('R-80: 4 processes that need a token at once send one refresh per round', async () => {
  const seen = await shareLogin({ processes: 4, rounds: 25, locked: true })
  expect(seen.reuses).to.equal(0)
  expect(seen.roundsByRefreshes).to.deep.equal({ 1: 25 })
  expect(seen.answers).to.deep.equal({ 200: 100 })
})

it('R-80: without the lock, the same processes reuse a refresh token', async () => {
  const seen = await shareLogin({ processes: 4, rounds: 200, locked: false })
  expect(seen.reuses).to.be.greaterThan(0)
})
