// tests 4 processes that share one rotating refresh token on disk for 200 rounds.
import { expect } from 'chai'
import { stopServers } from '../client/support/fake-servers.ts'
import { shareLogin } from '../client/support/shared-login.ts'

afterEach(stopServers)

it('R-80: 4 processes, 200 rounds: refreshes once per round without refresh token reuse', async () => {
  const seen = await shareLogin({ processes: 4, rounds: 200, locked: true })
  expect(seen.roundsByRefreshes).to.deep.equal({ 1: 200 })
  expect([seen.reuses, seen.refreshes]).to.deep.equal([0, 200])
  expect(seen.answers).to.deep.equal({ 200: 800 })
})
