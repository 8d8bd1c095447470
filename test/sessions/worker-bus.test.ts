// Tests the change bus and peers between processes of one host: store contracts and limits of the hub.
import { expect } from 'chai'
import { createHub } from '../../cli/workers/hub.ts'
import type { FromHub } from '../../cli/workers/message.ts'
import { type Change, createChangeBus } from '../../core/mcp/definitions/change-bus.ts'
import { createPeers } from '../../core/sessions/peers.ts'
import type { Neighbours } from '../../core/slots.ts'
import { serviceContract } from '../support/contracts/index.ts'
import { eventually } from '../support/eventually.ts'
import { connectTo, startNeighbours } from '../support/worker-processes.ts'

const resource = (index: number): Change => ({ kind: 'resource', uri: `note://${index}` })

const through = <Service>(create: (neighbours: Neighbours, index: number) => Service) => ({
  shared: true,
  open: (count: number) => ({ nodes: startNeighbours(count).map(create) }),
})

const openPeers = (neighbours: Neighbours, index: number) => {
  const peers = createPeers(neighbours.bus(`node${index}`))
  peers.receive(() => undefined)
  return peers
}

const openBus = (neighbours: Neighbours) => createChangeBus(neighbours.bus('node'))

describe('Change bus between worker processes: contract', () => {
  for (const { name, run } of serviceContract('changeBus', through(openBus))) it(name, run)
})

describe('Peers between worker processes: contract', () => {
  for (const { name, run } of serviceContract('peers', through(openPeers))) it(name, run)

  it('report an ended process as not alive', async () => {
    const [one, other] = startNeighbours(2)
    const here = openPeers(one as Neighbours, 0)
    openPeers(other as Neighbours, 1)
    expect(await here.isAlive('node1')).to.equal(true)
    other?.end()
    expect(await here.isAlive('node1')).to.equal(false)
    expect(await here.send('node1', { type: 'ended', session: 's', reason: 'r' })).to.equal(false)
  })

  it('respond 503 if the parent process is gone', async () => {
    const [one] = startNeighbours(1)
    const here = openPeers(one as Neighbours, 0)
    one?.end()
    for (const asked of [here.isAlive('node1'), here.send('node1', { type: 'ended', session: 's', reason: 'r' })]) {
      expect(await asked.catch(error => error)).to.include({ kind: 'unavailable' })
    }
  })
})

describe('Change bus between worker processes', () => {
  it('replays changes after a position, and reports lost or foreign positions', async () => {
    const [one, other] = startNeighbours(2, { maxBroadcasts: 50 }).map(openBus)
    const places: string[] = []
    one?.subscribe((_, place) => void places.push(place ?? ''))
    for (let index = 0; index < 60; index++) await other?.publish(resource(index))
    await eventually('all 60 changes are told', () => places.length === 60)
    const since = await one?.history?.since(places[55] as string)
    expect(since).to.deep.equal([56, 57, 58, 59].map(index => ({ change: resource(index), place: places[index] })))
    expect(await one?.history?.since(places[59] as string)).to.deep.equal([])
    expect(await one?.history?.since(places[9] as string)).to.have.length(50)
    const later = String(Number(places[59]) + 1)
    for (const gone of [places[8], '0', '', 'x', later]) {
      expect(await one?.history?.since(gone as string), gone).to.equal(undefined)
    }
  })

  it('limits the history size in characters', async () => {
    const [bus] = startNeighbours(1, { maxBroadcastSize: 10_000 }).map(openBus)
    const places: string[] = []
    bus?.subscribe((_, place) => void places.push(place ?? ''))
    const long = (index: number): Change => ({ kind: 'resource', uri: `note://${index}/${'x'.repeat(3_000)}` })
    for (let index = 0; index < 10; index++) await bus?.publish(long(index))
    expect(await bus?.history?.since(places[6] as string)).to.have.length(3)
    expect(await bus?.history?.since(places[5] as string)).to.equal(undefined)
  })

  it('reports missed changes to a stalled process and continues', async () => {
    const hub = createHub(0, { maxInTransit: 1_000 })
    const waiting: Array<() => void> = []
    const heard: FromHub[] = []
    const stuck = hub.connect((message, sent) => {
      heard.push(message)
      waiting.push(sent)
    })
    stuck.receive({ to: 'subscribe' })
    const bus = openBus(connectTo(hub))
    for (let index = 0; index < 200; index++) await bus.publish(resource(index))
    const held = heard.length
    expect(held).to.be.lessThan(100)
    for (const sent of waiting.splice(0)) sent()
    expect(heard.slice(held)).to.deep.equal([{ from: 'missed', number: 200 }])
    await bus.publish(resource(200))
    expect(heard.at(-1)).to.deep.include({ from: 'broadcast', first: 201 })
  })

  it('rejects messages to a stalled process', async () => {
    const hub = createHub(0, { maxInTransit: 1_000 })
    hub.connect(() => undefined).receive({ to: 'join', node: 'stuck' })
    const peers = createPeers(connectTo(hub).bus('here'))
    const send = (index: number) =>
      peers.send('stuck', { type: 'ended', session: `s${index}`, reason: 'r'.repeat(200) })
    const outcomes = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => send(index)))
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(4)
    expect(outcomes.at(-1)).to.have.nested.property('reason.kind', 'unavailable')
  })
})
