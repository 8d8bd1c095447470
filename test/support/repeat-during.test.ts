import { expect } from 'chai'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { eventually } from './eventually.ts'
import { repeatDuring } from './repeat-during.ts'

describe('repeatDuring', () => {
  it('lets a timeout of the body fire when the action never waits, and stops', async () => {
    let rounds = 0
    const act = async () => rounds++
    const inVain = () => eventually('something that never happens', () => false, Boolean, 20)
    expect(String(await rejectionOf(repeatDuring(act, inVain)))).to.match(/something that never happens/)
    const before = rounds
    await new Promise(setImmediate)
    expect(rounds).to.equal(before)
  })

  it('returns the value of the body and rejects with the error of the action', async () => {
    const act = async () => undefined
    const body = async () => 'value'
    expect(await repeatDuring(act, body)).to.equal('value')
    const failing = () => Promise.reject(new Error('the action failed'))
    expect(String(await rejectionOf(repeatDuring(failing, body)))).to.equal('Error: the action failed')
  })
})
