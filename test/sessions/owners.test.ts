// Tests session counts per owner and the choice of the session to evict.
import { expect } from 'chai'
import fc from 'fast-check'
import { type Held, Holders } from '../../core/sessions/session-owners.ts'

const session = (holder: string): Held => ({ holder })

describe('Session owners', () => {
  it('keep correct counts and evict the oldest idle session of the owner with the most, for any order of events', () => {
    const step = fc.record({
      act: fc.constantFrom('add', 'idle', 'use', 'remove'),
      holder: fc.constantFrom('a', 'b', 'c'),
      index: fc.nat(9),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const owners = new Holders<Held>()
        const [held, idle] = [[] as Held[], [] as Held[]]
        for (const { act, holder, index } of steps) {
          const one = act === 'add' ? session(holder) : held[index]
          if (!one) continue
          if (act === 'add') held.push(one)
          if (act !== 'add' && idle.includes(one)) idle.splice(idle.indexOf(one), 1)
          if (act === 'idle') idle.push(one)
          if (act === 'remove') held.splice(held.indexOf(one), 1)
          owners[act as 'add'](one)
        }
        const of = (list: readonly Held[], holder: string) => list.filter(one => one.holder === holder)
        expect(owners.idleCount).to.equal(idle.length)
        for (const holder of ['a', 'b', 'c']) expect(owners.countOf(holder)).to.equal(of(held, holder).length)
        const most = Math.max(...['a', 'b', 'c'].map(holder => of(idle, holder).length))
        const victim = owners.victim()
        expect(victim === undefined).to.equal(idle.length === 0)
        if (victim) expect(of(idle, victim.holder)).to.have.length(most)
        if (victim) expect(of(idle, victim.holder)[0]).to.equal(victim)
      }),
    )
  })
})
