// Memory that the in-memory grant store holds, measured on the heap.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import type { GrantStore } from '../../plugins/families/grant-store/index.ts'
import { createMemoryGrantStore } from '../../plugins/families/grant-store/index.ts'

const MIB = 1_048_576
const MINUTE = 60_000

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void
function heap(): number {
  for (let round = 0; round < 4; round++) collect()
  return process.memoryUsage().heapUsed
}

/** Not a local variable: V8 can keep its object until the function returns. */
let store: GrantStore | undefined

describe('Grant store in memory: memory use', () => {
  for (const [what, write] of [
    ['texts', (store, index) => store.set(`granted:${index}`, `${index}`.padEnd(1_000, 'x'), MINUTE)],
    ['short texts', (store, index) => store.set(`granted:${index}`, `${index}`, MINUTE)],
    ['non-ASCII texts', (store, index) => store.set(`granted:${index}`, `${index}`.padEnd(500, '鴨'), MINUTE)],
    ['sets', (store, index) => store.join(`granted:${index >> 4}`, `member ${index}`.padEnd(43, 'x'), MINUTE, 16)],
  ] as ReadonlyArray<readonly [string, (store: GrantStore, index: number) => Promise<unknown>]>) {
    it(`stays within its limit: ${what}`, async () => {
      const most = 8 * MIB
      store = createMemoryGrantStore({ pending: MIB, granted: most }, () => 0)
      for (let index = 0; index < 60_000; index++) await write(store, index)
      // Pending microtasks can refer to the store.
      await nextTurn()
      const full = heap()
      // Released between two collections: garbage of earlier test files in this process can be freed at any other time.
      store = undefined
      const held = full - heap()
      expect(held / most).to.be.within(0.3, 1.25)
    })
  }
})
