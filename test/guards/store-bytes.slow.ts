// Compares the heap that full in-memory stores hold with their limits in bytes.
import { expect } from 'chai'
import { countIn } from './run-count.ts'

describe('In-memory stores: heap use at the limit', () => {
  it('is near the limit of event and grant stores', async () => {
    const held = await countIn<Record<string, number>>('count-store-bytes', ['--expose-gc'])
    expect(Object.keys(held)).to.have.lengthOf(9)
    for (const [name, ratio] of Object.entries(held)) expect(ratio, name).to.be.within(0.5, 1.25)
  })
})
