// Tests session counts per owner and the choice of the session to evict.
import { expect } from 'chai'
import fc from 'fast-check'
import { createHolders, type Held } from '../../core/sessions/holders.ts'

const session = (holder: string): Held => ({ holder })

describe('Session owners', () => {
  it('count all sessions, sessions per owner and idle sessions', () => {
    const owners = createHolders<Held>()
    const [one, two] = [session('ada'), session('ada')]
    owners.add(one)
    owners.add(two)
    owners.add(session('bob'))
    owners.idle(one)
    expect([owners.count, owners.countOf('ada'), owners.countOf('bob'), owners.idleCount]).to.deep.equal([3, 2, 1, 1])
    owners.use(one)
    expect(owners.idleCount).to.equal(0)
    owners.remove(one)
    owners.remove(two)
    expect([owners.count, owners.countOf('ada'), owners.countOf('nobody')]).to.deep.equal([1, 0, 0])
  })

  it('evict the oldest idle session of the owner with the most idle sessions', () => {
    const owners = createHolders<Held>()
    const quiet = session('quiet')
    const greedy = [session('greedy'), session('greedy'), session('greedy')]
    for (const one of [quiet, ...greedy]) {
      owners.add(one)
      owners.idle(one)
    }
    expect(owners.victim()).to.equal(greedy[0])
    for (const one of greedy.slice(0, 1)) owners.idle(one)
    expect(owners.victim()).to.equal(greedy[1])
  })

  it('never evict a session in use', () => {
    const owners = createHolders<Held>()
    const used = [session('greedy'), session('greedy')]
    const quiet = session('quiet')
    for (const one of [...used, quiet]) owners.add(one)
    expect(owners.victim()).to.equal(undefined)
    owners.idle(quiet)
    expect(owners.victim()).to.equal(quiet)
  })

  it('keep correct counts for any order of events and drop owners without sessions', () => {
    const step = fc.record({
      act: fc.constantFrom('add', 'idle', 'use', 'remove'),
      holder: fc.constantFrom('a', 'b', 'c'),
      index: fc.nat(9),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), steps => {
        const owners = createHolders<Held>()
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
        expect([owners.count, owners.idleCount]).to.deep.equal([held.length, idle.length])
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
