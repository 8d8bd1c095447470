// Tests DPoP replay detection across hosts that share a store-sqlite file.
import { join } from 'node:path'
import { expect } from 'chai'
import { closeFiles, hasSqlite, newFolder } from '../plugins/store-sqlite/support/sqlite-files.ts'
import { boundTo, provenBy } from '../support/dpop.ts'
import { callWith, challengeHeader, startProtected } from '../support/protected-host.ts'
import { stopHosts } from '../support/start-host.ts'
import { inSeconds, makeKey, signToken, toJwk } from '../support/test-issuer.ts'

const ISSUER = 'https://issuer.test'
const PUBLIC = 'https://mcp.test'
const ATTEMPTS = 100

if (hasSqlite) {
  describe('DPoP replay detection with a shared SQLite file', () => {
    after(async () => {
      await stopHosts()
      await closeFiles()
    })

    it(`accepts a proof once in ${ATTEMPTS} concurrent attempts at two hosts`, async () => {
      const [issuerKey, key] = [makeKey('of-issuer'), makeKey('mine')]
      const plugins = {
        'auth-jwt': { issuer: ISSUER, keys: [toJwk(issuerKey)], audience: PUBLIC, dpop: { mode: 'required' as const } },
        'store-sqlite': { file: join(newFolder(), 'host.db') },
      }
      const start = () => startProtected(plugins, { http: { publicUrl: PUBLIC } })
      const hosts = [await start(), await start()]
      const claims = { iss: ISSUER, sub: 'ann', aud: PUBLIC, exp: inSeconds(300), ...boundTo(key) }
      const token = signToken(claims, issuerKey)
      const rounds: number[] = []
      for (let round = 0; round < 5; round++) {
        const headers = provenBy({ key, token, url: `${PUBLIC}/guarded` })
        const at = (index: number) => hosts[index % 2]?.guarded ?? ''
        const answers = await Promise.all(Array.from({ length: ATTEMPTS }, (_, index) => callWith(at(index), headers)))
        const passed = answers.filter(({ status }) => status === 200).length
        const replayed = answers.filter(answer => /was used before/.test(challengeHeader(answer) ?? '')).length
        expect(passed + replayed).to.equal(ATTEMPTS)
        rounds.push(passed)
      }
      expect(rounds.every(passed => passed === 1)).to.equal(true)
    })
  })
}
