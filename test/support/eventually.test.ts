import { expect } from 'chai'
import { eventually } from './eventually.ts'

const failureOf = (promise: Promise<unknown>) => promise.then(String, String)

describe('eventually', () => {
  it('returns the value that is truthy or satisfies the predicate', async () => {
    let count = 0
    expect(await eventually('three', () => ++count === 3 && 'three')).to.equal('three')
    expect(
      await eventually(
        'five',
        async () => ++count,
        found => found > 4,
      ),
    ).to.equal(5)
  })

  it('times out with the awaited condition and the last value, or rejects with the thrown error', async () => {
    expect(await failureOf(eventually('a light', () => ({ light: 0 }), Object.isFrozen, 30))).to.equal(
      'Error: waited 30 ms in vain for this: a light; found last: { light: 0 }',
    )
    expect(await failureOf(eventually('an answer', () => new Promise(() => undefined), Boolean, 20))).to.equal(
      'Error: waited 20 ms in vain for this: an answer; found last: nothing: the look did not end',
    )
    expect(await failureOf(eventually('an answer', () => Promise.reject(new Error('refused'))))).to.equal(
      'Error: refused',
    )
  })
})

// Without `no-experimental-require-module` Mocha loads tests by `require`, and `import()` loads the product a second time.
it('static and dynamic imports of a test share module instances', async () => {
  expect((await import('./eventually.ts')).eventually).to.equal(eventually)
})
