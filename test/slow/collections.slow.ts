// Tests garbage collection under load: calls cause almost no full collections and promote few bytes to the old
// generation.
import { expect } from 'chai'
import type { Survived } from '../guards/count-collections.ts'
import type { Work } from '../guards/guarded-host.ts'
import { countIn } from '../guards/run-count.ts'

/** Full collections during 9,600 calls. */
const MOST_FULL = 1
/**
 * Bytes a call. Measured: 8, 9 and 130 to 160. Lines of the access log that wait for a thread of a busy machine add up to 600.
 * A record that is kept for half a second after its call adds 7,300.
 */
const MOST_PROMOTED: Readonly<Partial<Record<Work, number>>> = { 'per request': 20, session: 20, everything: 2_000 }

describe('garbage collection of calls', () => {
  it('causes few full collections and promotes few bytes per call', async () => {
    const survived = await countIn<Record<Work, Survived>>('count-collections', ['--expose-gc'])
    for (const [work, { full, promoted }] of Object.entries(survived)) {
      expect(full, `full collections: ${work}`).to.be.at.most(MOST_FULL)
      expect(promoted, `bytes promoted a call: ${work}`).to.be.at.most(MOST_PROMOTED[work as Work] ?? 0)
    }
  })
})
