// Tests exact counts of objects, listeners, compilations and serializations per request, in a separate process.
import { expect } from 'chai'
import type { MadePerRequest } from './count-objects.ts'
import type { Made } from './counters.ts'
import type { Work } from './guarded-host.ts'
import { countIn } from './run-count.ts'

/** What is measured; less is welcome. Of timers, Node's own for each request is the one that is not the host's. */
const PLAIN = { controllers: 0, compilations: 0, listeners: 10, timers: 1, ownTimers: 0 }
const MOST: Readonly<Record<Work, Made>> = {
  'per request': { ...PLAIN, promises: 19, serializations: 2, serialized: 90 },
  session: { ...PLAIN, promises: 17, serializations: 2, serialized: 90 },
  // One listener more, and one turn of the event loop after which observers are told.
  everything: { ...PLAIN, listeners: 11, timers: 2, ownTimers: 1, promises: 27, serializations: 3, serialized: 370 },
  // Its page was serialized once, by the first: fourteen thousand characters.
  list: { ...PLAIN, promises: 19, serializations: 1, serialized: 5 },
}

describe('Work per request', () => {
  let made: Record<Work, MadePerRequest>
  before(async () => {
    made = await countIn<Record<Work, MadePerRequest>>('count-objects')
  })

  for (const [work, most] of Object.entries(MOST) as Array<[Work, Made]>) {
    it(`does not exceed the recorded counts: ${work}`, () => {
      const { each } = made[work]
      for (const [name, count] of Object.entries(most)) expect(each[name as keyof Made], name).to.be.at.most(count)
    })

    it(`leaves no listener on the connection: ${work}`, () => {
      const { before, after } = made[work].left
      expect(before).to.be.at.least(1)
      expect(after).to.equal(before)
    })
  }

  it('compiles a schema at startup or at the first call only', () => {
    for (const [work, { first, compiled }] of Object.entries(made)) {
      expect([first.compilations <= 1, compiled], work).to.deep.equal([true, 0])
    }
    const { atStart, first } = made['per request']
    expect(atStart.compilations + first.compilations, 'the counter counts').to.be.within(1, 200)
  })

  it('serializes a list page once', () => {
    const { first, each } = made.list
    expect(first.serialized - each.serialized).to.be.greaterThan(10_000)
  })
})
