// The contract of change buses.
import { deepEqual, equal, ok } from 'node:assert/strict'
import type { Change, ChangeBus } from '../../../core/mcp/definitions/change-bus.ts'
import { type Contract, eventually } from '../../../core/testing/contract.ts'

const resource = (uri: string): Change => ({ kind: 'resource', uri })
const CHANGES: readonly Change[] = [
  { kind: 'tools', toolset: 'all' },
  { kind: 'prompts', toolset: undefined },
  ...Array.from({ length: 50 }, (_, index) => resource(`note://${index}`)),
]

interface Heard {
  readonly changes: Change[]
  readonly places: Array<string | undefined>
  end(): void
}

function listenTo(bus: ChangeBus): Heard {
  const [changes, places]: [Change[], Array<string | undefined>] = [[], []]
  const end = bus.subscribe((change, place) => {
    changes.push(JSON.parse(JSON.stringify(change)))
    places.push(place)
  })
  return { changes, places, end }
}

const plain = (changes: readonly Change[]): Change[] => JSON.parse(JSON.stringify(changes))

async function publishAll(bus: ChangeBus, changes: readonly Change[]) {
  for (const change of changes) await bus.publish(change)
}

const oneNode: Contract<ChangeBus>['oneNode'] = {
  async 'notifies every listener of every change once, in publishing order'(bus) {
    const heard = [listenTo(bus), listenTo(bus)]
    // Concurrent: the order is that of the calls.
    await Promise.all(CHANGES.map(change => bus.publish(change)))
    for (const { changes } of heard) {
      await eventually(() => changes.length >= CHANGES.length)
      deepEqual(changes, plain(CHANGES))
    }
  },
  async 'does not notify a closed listener, but still notifies the others'(bus) {
    const [gone, left] = [listenTo(bus), listenTo(bus)]
    gone.end()
    gone.end()
    await publishAll(bus, CHANGES)
    await eventually(() => left.changes.length >= CHANGES.length)
    deepEqual([gone.changes.length, left.changes.length], [0, CHANGES.length])
  },
  async 'does not deliver changes published before the listener subscribed'(bus) {
    const first = listenTo(bus)
    await bus.publish(resource('note://before'))
    await eventually(() => first.changes.length === 1)
    const late = listenTo(bus)
    await bus.publish(resource('note://after'))
    await eventually(() => late.changes.length >= 1)
    deepEqual(late.changes, [resource('note://after')])
  },
  async 'can be read again from any position if it keeps a history'(bus) {
    const { history } = bus
    if (!history) return
    const heard = listenTo(bus)
    await publishAll(bus, CHANGES.slice(0, 5))
    await eventually(() => heard.places.length >= 5)
    const places = heard.places.map(place => {
      ok(place !== undefined, 'a bus with a history gives each change a place')
      return place
    })
    equal(history.position, places[4])
    ok(history.isAfter(String(places[3]), String(places[1])))
    ok(!history.isAfter(String(places[1]), String(places[3])))
    ok(!history.isAfter(String(places[1]), String(places[1])))
    const since = await history.since(String(places[1]))
    deepEqual(plain(since?.map(({ change }) => change) ?? []), plain(CHANGES.slice(2, 5)))
    deepEqual(
      since?.map(({ place }) => place),
      places.slice(2),
    )
    deepEqual(await history.since(String(places[4])), [])
  },
}

const twoNodes: Contract<ChangeBus>['twoNodes'] = {
  async 'delivers a change to both nodes with the same position'(one, other) {
    const heard = [listenTo(one), listenTo(other)]
    await publishAll(one, CHANGES)
    for (const { changes } of heard) {
      await eventually(() => changes.length >= CHANGES.length)
      deepEqual(changes, plain(CHANGES))
    }
    deepEqual(heard[0]?.places, heard[1]?.places)
  },
  async 'delivers concurrent changes in the same order on both nodes'(one, other) {
    const heard = [listenTo(one), listenTo(other)]
    await Promise.all([publishAll(one, CHANGES.slice(0, 20)), publishAll(other, CHANGES.slice(20, 40))])
    for (const { changes } of heard) await eventually(() => changes.length >= 40)
    equal(heard[0]?.changes.length, 40)
    deepEqual(heard[0]?.changes, heard[1]?.changes)
  },
  async 'delivers a change after the change that it followed'(one, other) {
    const [here, there] = [listenTo(one), listenTo(other)]
    await one.publish(resource('note://cause'))
    await eventually(() => there.changes.length === 1)
    await other.publish(resource('note://effect'))
    await eventually(() => here.changes.length === 2)
    deepEqual(here.changes, [resource('note://cause'), resource('note://effect')])
  },
}

export const changeBusChecks: Contract<ChangeBus> = { oneNode, twoNodes }
