// Floods of connections, subscriptions and calls.
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import { modernBytes, requestBytes } from '../requests.ts'
import type { Attack } from '../round.ts'

/** Connections of one flood. */
const FLOOD = 500
/**
 * Of a crowd, so many ask in one go, and the next when these were heard: how long one turn of the host's event loop lasts
 * is to say something about the host, and not about how many requests were waiting for it.
 */
const AT_ONCE = 25

/** Sends a request on each connection, some at once, and waits for the answers' heads where there are any. */
async function askByTurns(
  connections: readonly Connection[],
  bytes: (connection: Connection) => Buffer,
  heard: boolean,
) {
  for (let from = 0; from < connections.length; from += AT_ONCE) {
    const some = connections.slice(from, from + AT_ONCE)
    for (const connection of some) connection.send(bytes(connection))
    if (heard) await Promise.all(some.map(connection => connection.until(() => connection.heads.length > 0, 1_000)))
  }
}

const flood: Attack = {
  kind: 'connection-floods',
  about: `${FLOOD} connections at once, some of which ask for something`,
  pause: 1_500,
  async run(round) {
    const { chance, target } = round
    const connections = await Promise.all(
      Array.from({ length: FLOOD }, (_, index) => round.connect('anonymous', `127.0.1.${1 + (index % 250)}`)),
    )
    const half = Buffer.from('POST / HTTP/1.1\r\n')
    const bytes = chance.pick([
      requestBytes(target, { verb: 'GET', path: '/health' }),
      modernBytes(target, 'tools/call', { name: 'add', arguments: { a: 1, b: 2 } }),
      requestBytes(target, { verb: 'GET', path: '/sse' }),
      half,
    ])
    const asking = connections.filter(() => chance.oneIn(2))
    await askByTurns(asking, () => bytes, bytes !== half)
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
    const connections = await Promise.all(Array.from({ length: 100 }, () => round.connect('anonymous', '127.0.3.1')))
    const call = () =>
      modernBytes(target, 'tools/call', { name: chance.pick(['wait', 'talk', 'change', 'ask', 'echo']), arguments: {} })
    await askByTurns(connections, call, chance.oneIn(2))
    for (const connection of connections) if (chance.oneIn(2)) connection.drop()
    for (const connection of connections) await round.answers(connection, 1)
  },
}

export const crowdAttacks: readonly Attack[] = [flood, listening, calling]
