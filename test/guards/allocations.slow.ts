// Tests bytes allocated per request, counted by V8 in a separate process without optimized code for stable results.
import { expect } from 'chai'
import type { Allocated } from './count-bytes.ts'
import type { Work } from './guarded-host.ts'
import { countIn, NODE } from './run-count.ts'

/** Megabytes: nothing is collected while it is counted. */
const YOUNG = 128
const FLAGS = [
  '--expose-gc',
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  `--min-semi-space-size=${YOUNG}`,
  `--max-semi-space-size=${YOUNG}`,
]

/** Bytes: what was measured and two per cent, by the version of Node. Koa alone has 26,700. */
const MOST: Readonly<Record<Work, { readonly 20: number; readonly 24: number }>> = {
  'per request': { 20: 33_300, 24: 33_000 },
  session: { 20: 34_450, 24: 34_200 },
  everything: { 20: 49_500, 24: 48_900 },
  list: { 20: 30_100, 24: 29_700 },
}
/**
 * Bytes outside of the young generation, where only a full collection frees them: about 50, as of Node itself with Koa. V8 of
 * Node 20 counts the rest of a block that it has begun, too. With a Set or Map that each call enters and leaves: above 400.
 */
const MOST_OLD = { 20: 380, 24: 150 }

describe('Memory allocations per request', () => {
  let allocated: Record<Work, Allocated>
  before(async () => {
    allocated = await countIn<Record<Work, Allocated>>('count-bytes', FLAGS)
  })

  for (const work of Object.keys(MOST) as Work[]) {
    it(`stay below the limit: ${work}`, () => {
      const { young, old } = allocated[work]
      const version = NODE >= 24 ? 24 : 20
      const most = MOST[work][version]
      expect(young).to.be.within(most / 2, most)
      expect(old, 'outside of the young generation').to.be.at.most(MOST_OLD[version])
    })
  }
})
