// What a request makes beside bytes, counted in a process of its own. None of it depends on time: the numbers are exact.
import { expect } from 'chai'
import { countIn } from './count-in.ts'
import type { MadePerRequest } from './count-made.ts'
import type { Made } from './counters.ts'
import type { Work } from './guarded-host.ts'

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

describe('what a request makes', () => {
  let made: Record<Work, MadePerRequest>
  before(async function () {
    this.timeout(120_000)
    made = await countIn<MadePerRequest>('count-made')
  })

  for (const [work, most] of Object.entries(MOST) as Array<[Work, Made]>) {
    it(`is no more than it was: ${work}`, () => {
      const { each } = made[work]
      console.log(`      ${work}: ${JSON.stringify(each)}`)
      for (const [name, count] of Object.entries(most)) expect(each[name as keyof Made], name).to.be.at.most(count)
    })

    it(`stays nowhere: ${work} leaves no listener on its connection`, () => {
      const { before, after } = made[work].left
      console.log(`      ${work}: ${before} listeners after one request, ${after} after a thousand more`)
      expect(before).to.be.at.least(1)
      expect(after).to.equal(before)
    })
  }

  it('compiles a schema at the first call of a tool, or at the start, and never again', () => {
    for (const [work, { first, compiled }] of Object.entries(made)) {
      expect([first.compilations <= 1, compiled], work).to.deep.equal([true, 0])
    }
    const { atStart, first } = made['per request']
    console.log(`      compiled at the start: ${atStart.compilations}, by the first call: ${first.compilations}`)
    expect(atStart.compilations + first.compilations, 'the counter counts').to.be.within(1, 200)
  })

  it('serializes a page of a list once', () => {
    const { first, each } = made.list
    console.log(
      `      the first list: ${first.serialized} characters; each that follows: ${Math.round(each.serialized)}`,
    )
    expect(first.serialized - each.serialized).to.be.greaterThan(10_000)
  })
})
