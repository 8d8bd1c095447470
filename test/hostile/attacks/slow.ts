// Clients that write slowly, and clients that do not read responses.
import { setTimeout as wait } from 'node:timers/promises'
import { message, modernBytes, requestBytes } from '../requests.ts'
import type { Attack } from '../round.ts'
import { inSession, onSession, openSession } from '../session.ts'

const writing: Attack = {
  kind: 'slow-writing',
  about: 'heads and bodies that come byte by byte, and stop',
  lanes: 3,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect('anonymous')
    const bytes = modernBytes(target, 'tools/call', { name: 'add', arguments: { a: 1, b: 2 } })
    const end = chance.oneIn(3) ? bytes.length : chance.below(bytes.length)
    const step = chance.pick([1, 7, 40])
    for (let at = 0; at < end && !connection.closed && !round.over(); at += step) {
      connection.send(bytes.subarray(at, Math.min(at + step, end)), 0)
      await wait(chance.below(20))
    }
    if (end === bytes.length && !round.over()) await round.heads(connection, 1)
    else await connection.until(() => false, chance.pick([10, 1_000, 6_000]))
  },
}

/** Megabytes are asked for, and nothing or little of them is read. */
const reading: Attack = {
  kind: 'slow-reading',
  about: 'large answers asked for, many at once on one connection, and not read',
  lanes: 2,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect('anonymous', '127.0.0.4')
    const kilobytes = chance.pick([64, 1_024, 4_096])
    const one = modernBytes(target, 'tools/call', { name: 'large', arguments: { kilobytes } })
    const count = chance.pick([1, 4, 40])
    connection.pause()
    connection.send(Buffer.concat(Array.from({ length: count }, () => one)), count)
    const until = Date.now() + chance.pick([500, 2_000, 5_000])
    while (Date.now() < until && !connection.closed && !round.over()) {
      await wait(50)
      if (!chance.oneIn(4)) continue
      connection.resume()
      await wait(1)
      connection.pause()
    }
  },
}

/** Streams that talk to somebody who does not listen. */
const streams: Attack = {
  kind: 'slow-streams',
  about: 'streams of sessions and calls that are opened and not read',
  lanes: 2,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect('anonymous', '127.0.0.4')
    const session = await openSession(round, connection)
    if (!session) return
    const level = { id: 9, method: 'logging/setLevel', params: { level: 'debug' } }
    connection.send(inSession(round, session, message(level)))
    await round.answers(connection, 2)
    const silent = await round.connect('anonymous', '127.0.0.4')
    silent.pause()
    silent.send(onSession(round, session, 'GET'))
    for (let call = 0; call < 5; call++) {
      const talking = await round.connect('anonymous', '127.0.0.4')
      talking.pause()
      const name = chance.pick(['talk', 'large', 'change', 'murmur'])
      const params = { name, arguments: {}, _meta: { progressToken: call } }
      talking.send(inSession(round, session, message({ id: call, method: 'tools/call', params })))
    }
    const modern = await round.connect('anonymous', '127.0.0.4')
    modern.pause()
    modern.send(modernBytes(target, 'subscriptions/listen', { notifications: { toolsListChanged: true } }))
    modern.send(requestBytes(target, { verb: 'GET', path: '/sse' }))
    await wait(chance.pick([200, 1_000, 3_000]))
  },
}

export const slowAttacks: readonly Attack[] = [writing, reading, streams]
