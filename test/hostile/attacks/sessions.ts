// Session attacks: stolen, forged and expired session and event ids, repeated handshakes, and races at the end of a
// session.
import { randomBytes } from 'node:crypto'
import type { Connection } from '../connection.ts'
import type { Chance } from '../random.ts'
import { initializeParams, message, requestBytes } from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { type HostileSession, inSession, onSession, openSession, sessionHeaders } from '../session.ts'
import type { Identity } from '../target.ts'

/** An id that is almost one. */
function forge(id: string, chance: Chance): string {
  const at = chance.below(id.length)
  const kind = chance.below(6)
  if (kind === 0) return id.slice(0, at)
  if (kind === 1) return `${id}${chance.pick(['a', ' ', '=', ', '])}`
  if (kind === 2) return `${id.slice(0, at)}${id[at] === 'A' ? 'B' : 'A'}${id.slice(at + 1)}`
  if (kind === 3) return randomBytes(48).toString('base64url').slice(0, id.length)
  if (kind === 4) return 'x'.repeat(chance.pick([1, 100, 10_000]))
  return chance.pick(['', '__proto__', 'null', '0', '../x', id.toUpperCase()])
}

const call = (name: string, id: string | number, args = {}) =>
  message({ id, method: 'tools/call', params: { name, arguments: args, _meta: { progressToken: 1 } } })

/** What a thief does with the session of somebody else. */
async function steal(round: Round, connection: Connection, stolen: HostileSession, eventId: string | undefined) {
  const { chance, target } = round
  const kind = chance.below(7)
  const verb = kind === 0 ? 'DELETE' : 'GET'
  if (kind <= 2) connection.send(onSession(round, stolen, verb, kind === 1 ? eventId : undefined))
  else if (kind === 3)
    connection.send(
      inSession(round, stolen, message({ method: 'notifications/cancelled', params: { requestId: 'murmur' } })),
    )
  else if (kind === 4)
    connection.send(
      inSession(round, stolen, message({ id: 'ask-1', result: { action: 'accept', content: { name: 'x' } } })),
    )
  else if (kind === 5)
    connection.send(
      requestBytes(target, { path: `/message?sessionId=${stolen.id}`, who: stolen.who, body: call('whoami', 1) }),
    )
  else connection.send(inSession(round, stolen, call(chance.pick(['whoami', 'murmur']), 'stolen')))
  await round.heads(connection, connection.heads.length + 1)
  await connection.until(() => false, 100)
}

const theft: Attack = {
  kind: 'session-theft',
  about: "Alice's sessions and event ids, used by others; forged ids",
  lanes: 2,
  async run(round) {
    const { chance, target } = round
    const who = chance.pick<Identity>(['anonymous', 'mallory'])
    const victim = target.victims.length > 0 ? chance.pick(target.victims) : undefined
    const eventId = victim && victim.eventIds.length > 0 ? chance.pick(victim.eventIds) : undefined
    const connection = await round.connect(who)
    if (victim && chance.oneIn(2)) {
      const id = chance.oneIn(4) ? forge(victim.sessionId, chance) : victim.sessionId
      const path = chance.oneIn(4) ? chance.pick(['/', '/policed', '/t', '/u']) : victim.path
      return steal(round, connection, { id, path, who, revision: '2025-11-25' }, eventId)
    }
    const own = await openSession(round, connection)
    if (!own) return
    // Another's event ids in a session of one's own; and one's own id, forged.
    const id = chance.oneIn(3) ? forge(own.id, chance) : own.id
    const lastEventId = eventId ?? chance.pick(['0', '1_2', '-1', 'x'.repeat(5_000), '__proto__', '\u00e9'])
    const reader = await round.connect(who)
    reader.send(onSession(round, { ...own, id }, 'GET', chance.oneIn(4) ? forge(lastEventId, chance) : lastEventId))
    await round.heads(reader, 1)
    await reader.until(() => false, 100)
  },
}

const lives: Attack = {
  kind: 'session-lives',
  about: 'handshakes twice, many GETs, ends that race with calls, ids used twice',
  lanes: 2,
  async run(round) {
    const { chance } = round
    const who = chance.pick<Identity>(['anonymous', 'mallory', 'alice'])
    const connection = await round.connect(who)
    const session = await openSession(round, connection, {
      revision: chance.pick(['2025-11-25', '2025-06-18', '2025-03-26']),
    })
    if (!session) return
    const others: Connection[] = []
    const send = async (bytes: Buffer) => {
      const other = await round.connect(who)
      other.send(bytes)
      others.push(other)
    }
    const initialize = message({ id: 1, method: 'initialize', params: initializeParams() })
    const steps: ReadonlyArray<() => Promise<void>> = [
      () => send(onSession(round, session, 'GET')),
      () => send(onSession(round, session, 'GET')),
      () => send(onSession(round, session, 'DELETE')),
      () => send(inSession(round, session, initialize)),
      () => send(inSession(round, session, call('wait', chance.below(3), { ms: 300 }))),
      () => send(inSession(round, session, call('talk', chance.below(3)))),
      () => send(inSession(round, session, call('ask', chance.below(3)))),
      () => send(inSession(round, session, call('let_go', chance.below(3)))),
      () =>
        send(
          inSession(
            round,
            session,
            message({ method: 'notifications/cancelled', params: { requestId: chance.below(3) } }),
          ),
        ),
      () => send(inSession(round, session, message({ id: chance.below(3), result: {} }))),
      async () => others.at(chance.below(others.length || 1))?.drop(),
    ]
    for (let step = 0; step < 12 && !round.over(); step++) await chance.pick(steps)()
    for (const other of others) await round.heads(other, 1)
    if (chance.oneIn(2)) {
      // Two ends of one session at once, with a call between them.
      await Promise.all([
        send(onSession(round, session, 'DELETE')),
        send(inSession(round, session, call('add', 9))),
        send(onSession(round, session, 'DELETE')),
      ])
      for (const other of others) await round.heads(other, 1)
    }
    const after = await round.connect(who)
    after.send(inSession(round, session, message({ id: 'after', method: 'ping' })))
    await round.heads(after, 1)
  },
}

/** Sessions without number, left as they are. */
const hoarding: Attack = {
  kind: 'session-hoarding',
  about: 'sessions opened and left',
  pause: 300,
  async run(round) {
    const connection = await round.connect('anonymous', '127.0.0.5')
    const body = message({ id: 1, method: 'initialize', params: initializeParams() })
    const bytes = requestBytes(round.target, { body })
    const count = round.chance.pick([10, 50, 100])
    for (let opened = 0; opened < count && !connection.closed; opened++) {
      connection.send(bytes)
      await round.answers(connection, opened + 1)
    }
  },
}

const sse: Attack = {
  kind: 'sse',
  about: 'HTTP+SSE: streams dropped under running calls, messages for others, odd ids',
  lanes: 2,
  async run(round) {
    const { chance, target } = round
    const who = chance.pick<Identity>(['anonymous', 'mallory'])
    const stream = await round.connect(who)
    stream.send(
      requestBytes(target, { verb: 'GET', path: chance.pick(['/sse', '/policed/sse', '/t/sse', '/t/open/sse']), who }),
    )
    await round.heads(stream, 1)
    await stream.until(() => /data: \S+\n\n/.test(stream.text), 500)
    const endpoint = /data: (\S+)\n\n/.exec(stream.text)?.[1]
    if (endpoint === undefined) return
    const connection = await round.connect(chance.oneIn(4) ? (who === 'mallory' ? 'anonymous' : 'mallory') : who)
    const bodies = [
      message({ id: 1, method: 'initialize', params: initializeParams('2024-11-05') }),
      ...Array.from({ length: chance.pick([3, 40]) }, (_, id) =>
        call(chance.pick(['talk', 'wait', 'ask', 'add', 'change']), id + 2),
      ),
      '{"jsonrpc":"2.0"',
      message({ method: 'notifications/cancelled', params: { requestId: 3 } }),
    ]
    for (const [index, body] of bodies.entries()) {
      const path = chance.oneIn(10)
        ? endpoint.replace(/=.*/, `=${forge('a'.repeat(80), chance).replace(/[^\w-]/g, '')}`)
        : endpoint
      connection.send(requestBytes(target, { path, who: connection.who, body }))
      await round.heads(connection, index + 1)
      if (connection.closed) break
      if (chance.oneIn(30)) stream.drop()
    }
    await stream.until(() => false, chance.pick([0, 50, 500]))
  },
}

/** The headers of a session id that came twice, or with another route's path. */
const misplaced: Attack = {
  kind: 'session-misplaced',
  about: 'sessions at other routes, under other revisions, with doubled ids',
  pause: 20,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect('mallory')
    const session = await openSession(round, connection)
    if (!session) return
    const headers = chance.pick([
      { 'Mcp-Session-Id': [session.id, session.id] },
      { 'MCP-Protocol-Version': chance.pick(['2026-07-28', '1.0', '', '2024-11-05', '2025-11-25, 2025-11-25']) },
      { 'Mcp-Session-Id': session.id },
    ])
    const verb = chance.pick(['GET', 'POST', 'DELETE'])
    const path = chance.pick(['/', '/policed', '/stateless', '/t', '/t/open', '/guarded', '/sse'])
    const body = verb === 'POST' ? { body: call('whoami', 1) } : {}
    const before = connection.heads.length
    connection.send(
      requestBytes(target, {
        verb,
        path,
        who: 'mallory',
        headers: { ...sessionHeaders(session), ...headers },
        ...body,
      }),
    )
    await round.heads(connection, before + 1)
    await connection.until(() => false, 50)
  },
}

export const sessionAttacks: readonly Attack[] = [theft, lives, hoarding, sse, misplaced]
