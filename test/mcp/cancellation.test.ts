import { expect } from 'chai'
import { Cancellation } from '../../core/mcp/wire/cancellation.ts'

describe('A cancellation', () => {
  it('calls its listeners once, except removed ones, and late listeners at once', () => {
    const cancellation = new Cancellation()
    const heard: string[] = []
    const removed = () => heard.push('removed')
    cancellation.add(removed)
    cancellation.add(({ message }) => heard.push(`first ${message}`))
    cancellation.remove(removed)
    cancellation.abort(new Error('gone'))
    cancellation.abort(new Error('again'))
    cancellation.add(({ message }) => heard.push(`late ${message}`))
    expect(heard).to.deep.equal(['first gone', 'late gone'])
  })

  it('calls a listener once that was added twice', () => {
    const cancellation = new Cancellation()
    const calls: string[] = []
    const first = () => calls.push('first')
    const second = () => calls.push('second')
    for (const listener of [first, first, second]) cancellation.add(listener)
    cancellation.remove(first)
    cancellation.add(second)
    cancellation.abort(new Error('gone'))
    expect(calls).to.deep.equal(['second'])
  })

  it('has a signal that aborts with the same reason, read before or after', () => {
    const before = new Cancellation()
    const { signal } = before
    const reason = new Error('gone')
    before.abort(reason)
    expect([signal.aborted, signal.reason]).to.deep.equal([true, reason])
    const after = new Cancellation()
    after.abort(reason)
    expect(after.signal.reason).to.equal(reason)
  })

  it('follows a signal', () => {
    const controller = new AbortController()
    const cancellation = Cancellation.of(controller.signal)
    expect(cancellation.aborted).to.equal(false)
    controller.abort(new Error('gone'))
    expect(cancellation.reason?.message).to.equal('gone')
  })
})
