// Hundreds of pipelined requests behind a slow one, on a connection that then closes.
import { setTimeout as wait } from 'node:timers/promises'
import type { Connection } from '../connection.ts'
import { message, modernBytes, requestBytes } from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { inSession, onSession, openSession } from '../session.ts'

type Queue = (round: Round, connection: Connection) => Buffer | Promise<Buffer | undefined>

const modernCall = ({ target }: Round, name: string, args = {}, path = '/') =>
  modernBytes(target, 'tools/call', { name, arguments: args }, { path })

const listen = ({ target, chance }: Round) => {
  const notifications = {
    toolsListChanged: true,
    resourceSubscriptions: ['pages://one', `books://fiction/${chance.below(1e6)}`],
  }
  return modernBytes(target, 'subscriptions/listen', { notifications }, { path: '/' })
}

/** One request, to be sent many times over. */
const QUEUES: Readonly<Record<string, Queue>> = {
  'GET /sse': ({ target }) => requestBytes(target, { verb: 'GET', path: '/sse' }),
  'subscriptions/listen': listen,
  'slow calls': round => modernCall(round, 'wait', { ms: 500 }),
  'calls that talk': round => modernCall(round, 'talk'),
  'calls that change': round => modernCall(round, 'change'),
  'quick calls': round => modernCall(round, 'add', { a: 1, b: 2 }, '/stateless'),
  'large answers': round => modernCall(round, 'large', { kilobytes: 256 }),
  initialize: ({ target }) =>
    requestBytes(target, {
      body: message({
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} },
      }),
    }),
  async 'GET of one session'(round, connection) {
    const session = await openSession(round, connection)
    return session && onSession(round, session, 'GET')
  },
  async 'calls of one session'(round, connection) {
    const session = await openSession(round, connection)
    if (!session) return undefined
    const calls = Array.from({ length: 10 }, (_, id) =>
      inSession(
        round,
        session,
        message({ id: `${round.name}-${id}`, method: 'tools/call', params: { name: 'wait', arguments: { ms: 300 } } }),
      ),
    )
    return Buffer.concat(calls)
  },
  async 'DELETE of one session'(round, connection) {
    const session = await openSession(round, connection)
    return session && onSession(round, session, 'DELETE')
  },
}

const NAMES = Object.keys(QUEUES)

const queueing: Attack = {
  kind: 'pipelining',
  about: 'hundreds of requests queued on one connection, then dropped',
  // One connection at a time: of many, a turn of the loop that takes in all of them says little about any.
  pause: 50,
  async run(round) {
    const { chance } = round
    const connection = await round.connect('anonymous', '127.0.0.2')
    const one = await QUEUES[chance.pick(NAMES)]?.(round, connection)
    if (!one) return
    const count = chance.pick([10, 100, 300])
    const first = chance.oneIn(2) ? [modernCall(round, 'wait', { ms: 1_000 })] : []
    connection.send(Buffer.concat([...first, ...Array.from({ length: count }, () => one)]), count + first.length)
    await wait(chance.pick([0, 5, 50, 300]))
    chance.pick([() => connection.reset(), () => connection.endSending(), () => undefined])()
    await connection.until(() => false, chance.pick([0, 5, 100]))
  },
}

/** The first of a few pipelined requests is answered, then the connection closes. */
const patient: Attack = {
  kind: 'pipelining-patient',
  about: 'five requests on one connection, of which the first is answered',
  pause: 200,
  async run(round) {
    const connection = await round.connect('anonymous', '127.0.0.3')
    const requests = Array.from({ length: 5 }, (_, index) =>
      modernBytes(round.target, 'tools/call', { name: 'add', arguments: { a: index, b: 1 } }),
    )
    connection.send(Buffer.concat(requests), requests.length)
    await round.answers(connection, requests.length)
    const answers = connection.answers.map(({ status, body }) => /"sum":(\d+)/.exec(body.toString())?.[1] ?? status)
    if (answers.length > 0 && !`${answers}`.match(/^1(?:,\d)*(?:,503)?$/)) round.fault(`pipelined: ${answers}`)
  },
}

export const pipeliningAttacks: readonly Attack[] = [queueing, patient]
