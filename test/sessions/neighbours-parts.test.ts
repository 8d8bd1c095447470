// Long messages between the processes of one host go in parts: whole in the end, one part at a time, and what one session
// sends does not get in the way of another's.
import { expect } from 'chai'
import { createHub, type FromHub, type Hub, type ToHub } from '../../cli/workers/hub.ts'
import { createNeighbours } from '../../cli/workers/neighbours.ts'
import { PART_SIZE } from '../../cli/workers/parts.ts'
import { eventually } from '../support/eventually.ts'
import { connectTo } from '../support/neighbours.ts'

const OTHER_SHARE = 'honest'
const FLOOD_SHARE = 'flood'

/** A process that is heard of by `name`, and what came to it. */
async function joinAs(hub: Hub, name: string) {
  const received: string[] = []
  const neighbour = connectTo(hub)
  neighbour.join(name, text => void received.push(text))
  expect(await neighbour.has(name)).to.equal(true)
  return { neighbour, received }
}

/** A process whose messages to the hub wait for `goOn`, one for each call. */
function stepping(hub: Hub) {
  const said: ToHub[] = []
  let listener: (message: FromHub) => void = () => undefined
  const member = hub.connect((message, sent) => {
    listener(JSON.parse(JSON.stringify(message)))
    sent()
  })
  const neighbours = createNeighbours({
    send: message => said.push(message) > 0,
    receive(heard) {
      listener = heard
    },
  })
  said.length = 0
  const goOn = async () => {
    const message = said.shift()
    if (message) member.take(JSON.parse(JSON.stringify(message)))
    // Time for the answer, and for what comes after it.
    for (let turn = 0; turn < 10 && said.length === 0; turn++) await new Promise(resolve => setImmediate(resolve))
    return message
  }
  return { neighbours, said, goOn, member }
}

describe('long messages between the processes of one host', () => {
  it('come whole, whatever the parts are cut through', async () => {
    const hub = createHub()
    const { received } = await joinAs(hub, 'there')
    const [one, other] = [connectTo(hub), connectTo(hub)]
    const texts = [PART_SIZE - 1, PART_SIZE, PART_SIZE + 1, 2 * PART_SIZE, 3 * PART_SIZE + 7].flatMap(length =>
      ['x', '🦆'].map(text => `<${text.repeat(Math.ceil(length / text.length))}`.slice(0, length)),
    )
    const sent = texts.map((text, index) => (index % 2 ? one : other).send('there', text, OTHER_SHARE))
    expect(new Set(await Promise.all(sent))).to.deep.equal(new Set([true]))
    await eventually('all have come', () => received.length === texts.length)
    expect(received.toSorted().map(({ length }) => length)).to.deep.equal(texts.toSorted().map(({ length }) => length))
    expect(received.toSorted()).to.deep.equal(texts.toSorted())
  })

  it('leave a part at a time, those of the sessions in turn, and short ones go past them', async () => {
    const hub = createHub()
    const { received } = await joinAs(hub, 'there')
    const { neighbours, said, goOn } = stepping(hub)
    const [FLOOD, PARTS] = [7, 8]
    for (let index = 0; index < FLOOD; index++) {
      void neighbours.send('there', `f${'x'.repeat(PARTS * PART_SIZE - 1)}`, FLOOD_SHARE)
    }
    const done = { long: false, short: false }
    void neighbours.send('there', 'h'.repeat(2 * PART_SIZE), OTHER_SHARE).then(() => {
      done.long = true
    })
    const most = { parts: 0, size: 0 }
    let steps = 0
    for (; said.length > 0; steps++) {
      if (done.long && !done.short) {
        done.short = true
        void neighbours.send('there', 'short', OTHER_SHARE)
      }
      most.parts = Math.max(most.parts, said.filter(one => one.to === 'send' && one.part).length)
      const message = await goOn()
      if (message?.to === 'send') most.size = Math.max(most.size, message.text.length)
      if (steps === 4) expect(done.long, 'two parts of its own, and two of others').to.equal(true)
    }
    await eventually('all have come', () => received.length === FLOOD + 2)
    const flooded = FLOOD * PARTS
    console.log(
      `      parts of a flood: ${flooded}, before the other's end: ${received.findIndex(text => text[0] === 'h')} messages; ` +
        `the longest: ${most.size} characters; at most on the way: ${most.parts}`,
    )
    expect(most).to.deep.equal({ parts: 1, size: PART_SIZE })
    expect(steps).to.equal(flooded + 2 + 1)
    expect(received.slice(0, 2).map(text => text[0])).to.deep.equal(['h', 's'])
  })

  it('of one session are refused past its share, and not those of others', async () => {
    const hub = createHub(0, { underWay: 1_000_000 })
    // It takes nothing.
    const stuck: FromHub[] = []
    hub.connect(message => void stuck.push(message)).take({ to: 'join', node: 'stuck' })
    const here = connectTo(hub)
    const short = 'x'.repeat(10_000)
    const flood = await Promise.allSettled(Array.from({ length: 500 }, () => here.send('stuck', short, FLOOD_SHARE)))
    const passed = flood.filter(({ status }) => status === 'fulfilled').length
    const others = await Promise.allSettled(
      Array.from({ length: 100 }, (_, index) => here.send('stuck', 'a short one', `session ${index}`)),
    )
    const letIn = others.filter(({ status }) => status === 'fulfilled').length
    console.log(
      `      to a stuck process: ${passed} of a flood of ${flood.length}, ${letIn} of ${others.length} others`,
    )
    expect([passed, letIn]).to.deep.equal([50, 100])
    expect(flood.at(-1)).to.have.nested.property('reason.kind', 'unavailable')
    // A hundred floods leave room, too.
    await Promise.allSettled(
      Array.from({ length: 1_000 }, (_, index) => here.send('stuck', short, `flood ${index % 100}`)),
    )
    expect(await here.send('stuck', 'a short one', 'yet another')).to.equal(true)
  })

  it('have one part on the way to a process that takes nothing, and go on when it does', async () => {
    const hub = createHub()
    const left: Array<() => void> = []
    const heard: FromHub[] = []
    const slow = hub.connect((message, sent) => {
      heard.push(message)
      left.push(sent)
    })
    slow.take({ to: 'join', node: 'slow' })
    const { neighbours, said, goOn } = stepping(hub)
    const sent = neighbours.send('slow', 'x'.repeat(5 * PART_SIZE), OTHER_SHARE)
    for (let parts = 1; parts <= 5; parts++) {
      expect(await goOn()).to.include({ to: 'send' })
      expect([heard.length, said.length]).to.deep.equal([parts, 0])
      left.pop()?.()
      if (parts < 5) await eventually('the next part is sent', () => said.length > 0)
    }
    expect(await sent).to.equal(true)
  })

  it('that wait are bounded for each session', async () => {
    const hub = createHub()
    await joinAs(hub, 'there')
    const { neighbours, said } = stepping(hub)
    const text = 'x'.repeat(4_000_000)
    const refused: unknown[] = []
    for (let index = 0; index < 50; index++) {
      neighbours.send('there', text, FLOOD_SHARE).catch(error => void refused.push(error))
    }
    let other = 'waits'
    neighbours.send('there', text, OTHER_SHARE).catch(() => {
      other = 'refused'
    })
    await eventually('most are refused', () => refused.length > 0)
    console.log(
      `      of 50 long ones of a session that wait for a process: ${refused.length} refused; another's: ${other}`,
    )
    expect([refused.length, other, said.length]).to.deep.equal([46, 'waits', 1])
    expect(refused[0]).to.include({ kind: 'unavailable' })
  })

  it('are not taken where their sender ends in the middle, nor sent on where the receiver does', async () => {
    const hub = createHub()
    const { neighbour, received } = await joinAs(hub, 'there')
    const broken = stepping(hub)
    const whole = stepping(hub)
    void broken.neighbours.send('there', `b${'x'.repeat(3 * PART_SIZE)}`, OTHER_SHARE).catch(() => undefined)
    await broken.goOn()
    broken.member.gone()
    const sent = whole.neighbours.send('there', `w${'x'.repeat(PART_SIZE)}`, OTHER_SHARE)
    for (let part = 0; part < 2; part++) {
      await eventually('a part is sent', () => whole.said.length > 0)
      await whole.goOn()
    }
    expect(await sent).to.equal(true)
    await eventually('it has come', () => received.length === 1)
    expect(received[0]?.[0]).to.equal('w')
    const lost = whole.neighbours.send('there', `l${'x'.repeat(3 * PART_SIZE)}`, OTHER_SHARE)
    await eventually('a part is sent', () => whole.said.length > 0)
    await whole.goOn()
    neighbour.end()
    await eventually('the next part is sent', () => whole.said.length > 0)
    await whole.goOn()
    expect(await lost).to.equal(false)
    expect(received).to.have.length(1)
  })
})
