// Tests garbage collection under load: calls cause almost no full collections and promote few bytes to the old
// generation.
import { expect } from 'chai'
import type { Survived } from '../guards/count-collections.ts'
import { countIn } from '../guards/count-in.ts'
import type { Work } from '../guards/guarded-host.ts'

/** Of 20,000 calls, and bytes a call: what was measured and as much again. */
const MOST_FULL = 2
const MOST_PROMOTED: Readonly<Partial<Record<Work, number>>> = { 'per request': 20, session: 20, everything: 400 }

describe('garbage collection of calls', () => {
  it('causes few full collections and promotes few bytes per call', async function () {
    this.timeout(300_000)
    const survived = await countIn<Survived>('count-collections', ['--expose-gc'])
    for (const [work, { full, promoted }] of Object.entries(survived)) {
      expect(full, `full collections: ${work}`).to.be.at.most(MOST_FULL)
      expect(promoted, `bytes promoted a call: ${work}`).to.be.at.most(MOST_PROMOTED[work as Work] ?? 0)
    }
  })
})
