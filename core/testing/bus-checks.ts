// The contract of the message primitive.
import { deepEqual, equal, notEqual, ok } from 'node:assert/strict'
import type { Bus } from '../store/bus.ts'
import { type Contract, eventually } from './contract.ts'

const TEXTS = ['first', '', 'naïve 🦆 \0\n"', ...Array.from({ length: 50 }, (_, index) => `text ${index}`)]

function listenTo(bus: Bus) {
  const [texts, positions]: [Array<string | undefined>, Array<string | undefined>] = [[], []]
  const end = bus.subscribe((text, position) => {
    texts.push(text)
    positions.push(position)
  })
  return { texts, positions, end }
}

function receive(bus: Bus): string[] {
  const received: string[] = []
  bus.receive(text => void received.push(text))
  return received
}

async function publishAll(bus: Bus, texts: readonly string[]) {
  for (const text of texts) await bus.publish(text)
}

const oneNode: Contract<Bus>['oneNode'] = {
  async 'delivers every text to every listener once, in publishing order'(bus) {
    const received = [listenTo(bus), listenTo(bus)]
    // Concurrent calls are delivered in call order.
    await Promise.all(TEXTS.map(text => bus.publish(text)))
    for (const { texts } of received) {
      await eventually(() => texts.length >= TEXTS.length)
      deepEqual(texts, TEXTS)
    }
  },
  async 'delivers texts that a listener publishes to all listeners in one order'(bus) {
    const first = listenTo(bus)
    const end = bus.subscribe(text => text === 'cause' && void bus.publish('effect'))
    const second = listenTo(bus)
    await bus.publish('cause')
    for (const { texts } of [first, second]) {
      await eventually(() => texts.length === 2)
      deepEqual(texts, ['cause', 'effect'])
    }
    end()
  },
  async 'delivers nothing to a closed listener, and everything to the others'(bus) {
    const [closed, open] = [listenTo(bus), listenTo(bus)]
    closed.end()
    closed.end()
    await publishAll(bus, TEXTS)
    await eventually(() => open.texts.length >= TEXTS.length)
    deepEqual([closed.texts.length, open.texts.length], [0, TEXTS.length])
  },
  async 'delivers nothing that was published before the subscription'(bus) {
    const first = listenTo(bus)
    await bus.publish('before')
    await eventually(() => first.texts.length === 1)
    const late = listenTo(bus)
    await bus.publish('after')
    await eventually(() => late.texts.length >= 1)
    deepEqual(late.texts, ['after'])
  },
  async 'reads the texts after any position'(bus) {
    const received = listenTo(bus)
    await publishAll(bus, TEXTS.slice(0, 5))
    await eventually(() => received.positions.length >= 5)
    const positions = received.positions.map(position => {
      ok(position !== undefined, 'each text has a position')
      return position
    })
    equal(bus.position, positions[4])
    const [one, other] = [String(positions[1]), String(positions[3])]
    deepEqual([bus.isAfter(other, one), bus.isAfter(one, other), bus.isAfter(one, one)], [true, false, false])
    deepEqual(
      await bus.since(one),
      TEXTS.slice(2, 5).map((text, index) => ({ text, position: positions[index + 2] })),
    )
    deepEqual(await bus.since(bus.position), [])
  },
  async 'reports this node as alive and an unknown node as not alive, and stores no texts for it'(bus) {
    const received = receive(bus)
    deepEqual([await bus.isAlive(bus.node), await bus.isAlive('nobody')], [true, false])
    equal(await bus.send('nobody', 'text', 'share'), false)
    deepEqual(received, [])
  },
  async 'can be left twice'(bus) {
    await bus.leave()
    await bus.leave()
  },
}

const twoNodes: Contract<Bus>['twoNodes'] = {
  async 'delivers a text to both nodes with the same position'(one, other) {
    const received = [listenTo(one), listenTo(other)]
    await publishAll(one, TEXTS)
    for (const { texts } of received) {
      await eventually(() => texts.length >= TEXTS.length)
      deepEqual(texts, TEXTS)
    }
    deepEqual(received[0]?.positions, received[1]?.positions)
  },
  async 'delivers concurrent texts in the same order on both nodes'(one, other) {
    const received = [listenTo(one), listenTo(other)]
    await Promise.all([publishAll(one, TEXTS.slice(0, 20)), publishAll(other, TEXTS.slice(20, 40))])
    for (const { texts } of received) await eventually(() => texts.length >= 40)
    equal(received[0]?.texts.length, 40)
    deepEqual(received[0]?.texts, received[1]?.texts)
  },
  async 'delivers a text after the text that it followed'(one, other) {
    const [here, there] = [listenTo(one), listenTo(other)]
    await one.publish('cause')
    await eventually(() => there.texts.length === 1)
    await other.publish('effect')
    await eventually(() => here.texts.length === 2)
    deepEqual(here.texts, ['cause', 'effect'])
  },
  async 'gives each node its own name and lists it to the others'(one, other) {
    notEqual(one.node, other.node)
    deepEqual(await Promise.all([one.isAlive(other.node), other.isAlive(one.node)]), [true, true])
  },
  async 'delivers texts to their node only, once and in order'(one, other) {
    const [here, there] = [receive(one), receive(other)]
    for (const text of TEXTS) equal(await one.send(other.node, text, 'share'), true)
    await eventually(() => there.length >= TEXTS.length)
    deepEqual([here, there], [[], TEXTS])
  },
  async 'delivers texts of two senders in the order of each sender'(one, other) {
    const [here, there] = [receive(one), receive(other)]
    const send = async (from: Bus, to: Bus) => {
      for (const text of TEXTS) await from.send(to.node, `${from.node} ${text}`, 'share')
    }
    await Promise.all([send(one, other), send(other, one)])
    await eventually(() => here.length >= TEXTS.length && there.length >= TEXTS.length)
    deepEqual([here, there], [TEXTS.map(text => `${other.node} ${text}`), TEXTS.map(text => `${one.node} ${text}`)])
  },
  async 'reports a node as not alive soon after it leaves and stores no texts for it'(one, other) {
    equal(await one.isAlive(other.node), true)
    await other.leave()
    await eventually(async () => !(await one.isAlive(other.node)))
    equal(await one.isAlive(other.node), false, 'a node that left is not alive')
    equal(await one.send(other.node, 'text', 'share'), false)
  },
}

export const busChecks: Contract<Bus> = { oneNode, twoNodes }
