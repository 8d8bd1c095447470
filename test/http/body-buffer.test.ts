import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'chai'
import fc from 'fast-check'
import { BodyBuffer } from '../../core/http/json-body.ts'

setFlagsFromString('--expose_gc')
const collect = runInNewContext('gc') as () => void

function heapUsed(): number {
  collect()
  return process.memoryUsage().heapUsed
}

describe('Body chunk collection', () => {
  it('returns the received bytes for any chunking', () => {
    const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(5_000), fc.constantFrom(4_095, 4_096, 4_097, 70_000)), {
      maxLength: 40,
    })
    fc.assert(
      fc.property(sizes, sizes => {
        const body = new BodyBuffer()
        const chunks = sizes.map((size, index) => Buffer.alloc(size, index))
        for (const chunk of chunks) body.add(chunk)
        const whole = Buffer.concat(chunks)
        expect(body.size).to.equal(whole.length)
        expect(body.take().equals(whole)).to.equal(true)
      }),
    )
  })

  it('merges single-byte chunks into few buffers', () => {
    const count = 100_000
    const slab = Buffer.alloc(count, 'x')
    const body = new BodyBuffer()
    // Nothing is awaited between the two, so that only what is gathered can make the heap larger.
    const before = heapUsed()
    for (let at = 0; at < count; at++) body.add(slab.subarray(at, at + 1))
    const grown = heapUsed() - before
    // A Buffer takes about 100 bytes of the heap, wherever its bytes are.
    expect(grown / count, 'bytes of the heap for each chunk').to.be.below(10)
    expect(body.take().length).to.equal(count)
  })

  it('returns a single chunk without copying', () => {
    for (const size of [1, 100, 100_000]) {
      const [body, chunk] = [new BodyBuffer(), Buffer.alloc(size)]
      body.add(chunk)
      expect(body.take()).to.equal(chunk)
    }
  })
})
