// Tests the collection of request body chunks.
import { queryObjects } from 'node:v8'
import { expect } from 'chai'
import fc from 'fast-check'
import { Gathered } from '../../core/http/gather.ts'

describe('Body chunk collection', () => {
  it('returns the received bytes for any chunking', () => {
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

  it('merges single-byte chunks into few buffers', () => {
    const count = 300_000
    const slab = Buffer.alloc(count, 'x')
    const body = new Gathered()
    const before = queryObjects(Uint8Array, { format: 'count' })
    for (let at = 0; at < count; at++) body.add(slab.subarray(at, at + 1))
    const made = Number(queryObjects(Uint8Array, { format: 'count' })) - Number(before)
    expect(made).to.be.within(1, 200)
    expect(body.take().length).to.equal(count)
  })

  it('returns a single chunk without copying', () => {
    for (const size of [1, 100, 100_000]) {
      const [body, chunk] = [new Gathered(), Buffer.alloc(size)]
      body.add(chunk)
      expect(body.take()).to.equal(chunk)
    }
  })
})
