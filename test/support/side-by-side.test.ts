// Tests side by side: they overlap, each fails by itself, and a second try is a new one.
import { expect } from 'chai'
import { createGate } from './gate.ts'
import { sideBySide } from './side-by-side.ts'

describe('tests side by side', () => {
  const [one, other] = [createGate(), createGate()]
  const together = sideBySide()

  together('go on while the next one runs', async () => {
    one.open()
    await other.opened
  })
  together('have begun while the one before ran', async () => {
    other.open()
    await one.opened
  })

  it('fail by themselves, and begin anew where they are tried again', async () => {
    const registered = new Map<string, () => Promise<unknown>>()
    const test = sideBySide((name, run) => registered.set(name, run))
    let [good, bad] = [0, 0]
    test('good', async () => void good++)
    test('bad', async () => {
      if (++bad === 1) throw new Error('the first try')
    })
    await registered.get('good')?.()
    expect([good, bad]).to.deep.equal([1, 1])
    const failed = await registered.get('bad')?.().then(String, String)
    expect(failed).to.equal('Error: the first try')
    await registered.get('bad')?.()
    expect([good, bad]).to.deep.equal([1, 2])
  })
})
