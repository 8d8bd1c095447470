// What calls leave behind: with thirty-two connections calling at once and V8's own young generation, young collections free what
// calls made. Full ones come for what is kept, not for what is called.
import { expect } from 'chai'
import type { Survived } from '../guards/count-collections.ts'
import { countIn } from '../guards/count-in.ts'
import type { Work } from '../guards/guarded-host.ts'

/** Of 20,000 calls, and bytes a call: what was measured and as much again. */
const MOST_FULL = 2
const MOST_PROMOTED: Readonly<Partial<Record<Work, number>>> = { 'per request': 20, session: 20, everything: 400 }

describe('what survives calls', () => {
  it('is next to nothing: no full collections, and few bytes that move to the old generation', async function () {
    this.timeout(300_000)
    const survived = await countIn<Survived>('count-collections', ['--expose-gc'])
    for (const [work, { calls, collections, full, promoted }] of Object.entries(survived)) {
      console.log(
        `      ${work}: ${calls} calls, ${collections} young collections, ${full} full, ${promoted} bytes a call`,
      )
    }
    for (const [work, { full, promoted }] of Object.entries(survived)) {
      expect(full, `full collections: ${work}`).to.be.at.most(MOST_FULL)
      expect(promoted, `bytes promoted a call: ${work}`).to.be.at.most(MOST_PROMOTED[work as Work] ?? 0)
    }
  })
})
