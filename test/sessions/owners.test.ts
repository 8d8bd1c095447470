// Tests session counts per owner and the choice of the session to evict.
import { expect } from 'chai'
import fc from 'fast-check'
import { type OwnedSession, SessionOwners } from '../../core/sessions/session-owners.ts'

interface Idle extends OwnedSession {
  lastUsed: number
}

describe('Session owners', () => {
  it('keep correct counts and evict the longest idle session of the owners with the most, for any order of events', () => {
    const step = fc.record({
      act: fc.constantFrom('add', 'idle', 'use', 'remove'),
      holder: fc.constantFrom('a', 'b', 'c'),
      index: fc.nat(9),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const owners = new SessionOwners<Idle>()
        const [held, idle] = [[] as Idle[], [] as Idle[]]
        for (const [now, { act, holder, index }] of steps.entries()) {
          const one = act === 'add' ? { holder, lastUsed: now } : held[index]
          if (!one) continue
          if (act === 'add') held.push(one)
          if (act !== 'add' && idle.includes(one)) idle.splice(idle.indexOf(one), 1)
          if (act === 'idle') {
            one.lastUsed = now
            idle.push(one)
          }
          if (act === 'remove') held.splice(held.indexOf(one), 1)
          owners[act as 'add'](one)
        }
        const of = (list: readonly Idle[], holder: string) => list.filter(one => one.holder === holder)
        expect(owners.idleCount).to.equal(idle.length)
        for (const holder of ['a', 'b', 'c']) expect(owners.countOf(holder)).to.equal(of(held, holder).length)
        const counts = ['a', 'b', 'c'].map(holder => of(idle, holder).length)
        const longest = idle.find(({ holder }) => of(idle, holder).length === Math.max(...counts))
        expect(owners.victim()).to.equal(longest)
      }),
    )
  })
})
