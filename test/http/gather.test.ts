import { queryObjects } from 'node:v8'
import { expect } from 'chai'
import fc from 'fast-check'
import { Gathered } from '../../core/http/gather.ts'

describe('the bytes of a body', () => {
  it('are what came, in whatever pieces', () => {
    const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(5_000), fc.constantFrom(4_095, 4_096, 4_097, 70_000)), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(sizes, sizes => {
        const body = new Gathered()
        const chunks = sizes.map((size, index) => Buffer.alloc(size, index))
        for (const chunk of chunks) body.add(chunk)
        const whole = Buffer.concat(chunks)
        expect(body.size).to.equal(whole.length)
        expect(body.take().equals(whole)).to.equal(true)
      }),
    )
  })

  it('are held as few buffers, though each byte came as one', () => {
    const count = 300_000
    const slab = Buffer.alloc(count, 'x')
    const body = new Gathered()
    const before = queryObjects(Uint8Array, { format: 'count' })
    for (let at = 0; at < count; at++) body.add(slab.subarray(at, at + 1))
    const made = Number(queryObjects(Uint8Array, { format: 'count' })) - Number(before)
    console.log(`      ${count} chunks of a byte are held as ${made} buffers`)
    expect(made).to.be.within(1, 200)
    expect(body.take().length).to.equal(count)
  })

  it('that came in one piece are that piece', () => {
    for (const size of [1, 100, 100_000]) {
      const [body, chunk] = [new Gathered(), Buffer.alloc(size)]
      body.add(chunk)
      expect(body.take()).to.equal(chunk)
    }
  })
})
