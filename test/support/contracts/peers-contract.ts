// The contract of peers: ordered messages to one node, and liveness.
import { deepEqual, equal, notEqual } from 'node:assert/strict'
import type { PeerMessage, Peers } from '../../../core/sessions/peers.ts'
import { type Contract, eventually } from '../../../core/testing/contract.ts'

const COUNT = 100

const message = (session: string, request: number | string = 0): PeerMessage => ({
  type: 'cancel',
  session,
  request,
  reason: 'naïve 🦆',
})

function hear(peers: Peers): PeerMessage[] {
  const heard: PeerMessage[] = []
  peers.receive(one => void heard.push(one))
  return heard
}

const oneNode: Contract<Peers>['oneNode'] = {
  async 'reports this node as alive and an unknown node as not alive'(peers) {
    equal(await peers.isAlive(peers.node), true)
    equal(await peers.isAlive('nobody'), false)
  },
  async 'stores no messages for an unknown node'(peers) {
    const heard = hear(peers)
    equal(await peers.send('nobody', message('s')), false)
    deepEqual(heard, [])
  },
  async 'can be left twice'(peers) {
    await peers.leave()
    await peers.leave()
  },
}

const twoNodes: Contract<Peers>['twoNodes'] = {
  async 'gives each node its own name and lists it to the others'(one, other) {
    notEqual(one.node, other.node)
    deepEqual(await Promise.all([one.isAlive(other.node), other.isAlive(one.node)]), [true, true])
  },
  async 'delivers messages to their node unchanged, once and in order'(one, other) {
    const [here, there] = [hear(one), hear(other)]
    const sent = Array.from({ length: COUNT }, (_, index) => message('s', index % 2 ? index : `${index}`))
    for (const each of sent) equal(await one.send(other.node, each), true)
    await eventually(() => there.length >= COUNT)
    deepEqual(there, sent)
    deepEqual(here, [])
  },
  async 'delivers messages of two senders in the order of each sender'(one, other) {
    const [here, there] = [hear(one), hear(other)]
    const send = async (from: Peers, to: Peers) => {
      for (let index = 0; index < COUNT; index++) await from.send(to.node, message(from.node, index))
    }
    await Promise.all([send(one, other), send(other, one)])
    await eventually(() => here.length >= COUNT && there.length >= COUNT)
    const numbers = Array.from({ length: COUNT }, (_, index) => index)
    for (const [heard, from] of [
      [here, other],
      [there, one],
    ] as const) {
      deepEqual(
        heard.map(each => each.session),
        numbers.map(() => from.node),
      )
      deepEqual(
        heard.map(each => (each.type === 'cancel' ? each.request : undefined)),
        numbers,
      )
    }
  },
  async 'delivers published messages to every listener of every node, in order'(one, other) {
    const heard = [hear(one), hear(one), hear(other), hear(other)]
    const sent = Array.from(
      { length: COUNT },
      (_, body) => ({ type: 'plugin', plugin: 'p', session: 's', body }) as const,
    )
    await Promise.all(sent.map(each => one.publish(each)))
    await eventually(() => heard.every(({ length }) => length >= COUNT))
    for (const each of heard) deepEqual(each, sent)
  },
  async 'reports a node as not alive soon after it leaves and stores no messages for it'(one, other) {
    equal(await one.isAlive(other.node), true)
    await other.leave()
    await eventually(async () => !(await one.isAlive(other.node)))
    equal(await one.isAlive(other.node), false, 'a node that left is not alive')
    equal(await one.send(other.node, message('s')), false)
  },
}

export const peersChecks: Contract<Peers> = { oneNode, twoNodes }
