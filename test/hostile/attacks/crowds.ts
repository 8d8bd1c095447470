// Many at once: connections, subscriptions, calls.
import { setTimeout as wait } from 'node:timers/promises'
import { modernBytes, requestBytes } from '../requests.ts'
import type { Attack } from '../round.ts'

/** Connections of one flood. */
const FLOOD = 500

const flood: Attack = {
  kind: 'connection-floods',
  about: `${FLOOD} connections at once, some of which ask for something`,
  pause: 1_500,
  async run(round) {
    const { chance, target } = round
    const connections = await Promise.all(
      Array.from({ length: FLOOD }, (_, index) => round.connect('anonymous', `127.0.1.${index % 250}`)),
    )
    const bytes = chance.pick([
      requestBytes(target, { verb: 'GET', path: '/health' }),
      modernBytes(target, 'tools/call', { name: 'add', arguments: { a: 1, b: 2 } }),
      requestBytes(target, { verb: 'GET', path: '/sse' }),
      Buffer.from('POST / HTTP/1.1\r\n'),
    ])
    for (const connection of connections) if (chance.oneIn(2)) connection.send(bytes)
    await wait(chance.pick([0, 50, 300]))
    for (const connection of connections) {
      if (chance.oneIn(2)) connection.reset()
      else connection.drop()
    }
  },
}

const listening: Attack = {
  kind: 'listening',
  about: 'subscriptions past their bound, with many and odd URIs',
  pause: 300,
  async run(round) {
    const { chance, target } = round
    const address = `127.0.2.${chance.between(1, 3)}`
    const count = chance.pick([5, 120])
    const odd = [
      '',
      '__proto__',
      'books://{shelf}',
      'books://fiction/%zz',
      'family1://a/b/../..',
      '\ud800',
      'secret://one',
    ]
    for (let index = 0; index < count; index++) {
      const connection = await round.connect('anonymous', address)
      const uris = chance.oneIn(2) ? ['pages://one'] : [chance.pick(odd), chance.pick(odd)]
      const notifications = { toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: uris }
      connection.send(modernBytes(target, 'subscriptions/listen', { notifications }))
      await round.heads(connection, 1)
    }
    const changing = await round.connect('anonymous')
    changing.send(modernBytes(target, 'tools/call', { name: 'change', arguments: {} }))
    await round.answers(changing, 1)
  },
}

const calling: Attack = {
  kind: 'call-crowds',
  about: 'a hundred calls at once that wait, talk and ask; half of them dropped',
  pause: 500,
  async run(round) {
    const { chance, target } = round
    const connections = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const connection = await round.connect('anonymous', '127.0.3.1')
        const name = chance.pick(['wait', 'talk', 'change', 'ask', 'echo'])
        connection.send(modernBytes(target, 'tools/call', { name, arguments: {} }))
        return connection
      }),
    )
    for (const connection of connections) if (chance.oneIn(2)) connection.drop()
    for (const connection of connections) await round.answers(connection, 1)
  },
}

export const crowdAttacks: readonly Attack[] = [flood, listening, calling]
