// Tests that one session cannot use up the message capacity to a stalled process.
import { expect } from 'chai'
import { createHub } from '../../cli/workers/hub.ts'
import type { FromHub } from '../../cli/workers/message.ts'
import { connectTo } from '../support/worker-processes.ts'

const FLOOD_SHARE = 'flood'

describe('Messages between worker processes', () => {
  it('are limited per session, so that other sessions keep their share', async () => {
    const hub = createHub(0, { maxInTransit: 1_000_000 })
    // It takes nothing.
    const stuck: FromHub[] = []
    hub.connect(message => void stuck.push(message)).receive({ to: 'join', node: 'stuck' })
    const here = connectTo(hub).bus('here')
    const short = 'x'.repeat(10_000)
    const flood = await Promise.allSettled(Array.from({ length: 500 }, () => here.send('stuck', short, FLOOD_SHARE)))
    const passed = flood.filter(({ status }) => status === 'fulfilled').length
    const others = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) => here.send('stuck', 'a short one', `session ${index}`)),
    )
    const letIn = others.filter(({ status }) => status === 'fulfilled').length
    expect([passed, letIn]).to.deep.equal([50, 100])
    expect(flood.at(-1)).to.have.nested.property('reason.kind', 'unavailable')
    // A hundred floods leave room, too.
    await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, index) => here.send('stuck', short, `flood ${index % 100}`)),
    )
    expect(await here.send('stuck', 'a short one', 'yet another')).to.equal(true)
  })

  it('count against the limit of a session until each is delivered', async () => {
    const hub = createHub(0, { maxInTransit: 1_000 })
    const deliveries: Array<() => void> = []
    hub.connect((_message, delivered) => void deliveries.push(delivered)).receive({ to: 'join', node: 'slow' })
    const here = connectTo(hub).bus('here')
    const countAccepted = async () => {
      const sent = await Promise.allSettled(
        Array.from({ length: 20 }, () => here.send('slow', 'x'.repeat(100), FLOOD_SHARE)),
      )
      return sent.filter(({ status }) => status === 'fulfilled').length
    }
    expect(await countAccepted()).to.equal(5)
    deliveries.at(-1)?.()
    expect(await countAccepted()).to.equal(1)
  })
})
