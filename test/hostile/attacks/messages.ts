// JSON-RPC messages of every method and protocol version, with invalid structure or text.
import type { Connection } from '../connection.ts'
import {
  type Fields,
  type Json,
  METHODS,
  modernBytes,
  modernHeaders,
  modernMeta,
  NOTIFICATIONS,
  openPath,
  REVISIONS,
  requestBytes,
} from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { type HostileSession, inSession, onSession, openSession } from '../session.ts'
import type { Identity } from '../target.ts'
import { hostileString, hostileValue, mutate, spoil } from '../values.ts'

/** Messages of one round. */
const MESSAGES = 12
const IDENTITIES: readonly Identity[] = ['anonymous', 'anonymous', 'mallory', 'alice']

/** A method's call, with the fields of its envelope. */
function call({ chance }: Round, meta?: Fields): Fields {
  if (chance.oneIn(8)) {
    const [method, params] = chance.pick(NOTIFICATIONS)
    return { jsonrpc: '2.0', method, params }
  }
  const [method, params] = chance.pick(METHODS)
  return { jsonrpc: '2.0', id: chance.between(1, 1e6), method, params: meta ? { _meta: meta, ...params } : params }
}

/** Something in the place of a message, or a good one spoiled. */
function spoiled(round: Round, good: Fields): string | Uint8Array {
  const { chance } = round
  const kind = chance.below(10)
  if (kind === 0) return JSON.stringify(good)
  if (kind === 1) return JSON.stringify(hostileValue(chance))
  if (kind <= 3) return spoil(JSON.stringify(good), chance)
  if (kind === 4) return JSON.stringify(Array.from({ length: chance.pick([0, 1, 3, 51]) }, () => mutate(good, chance)))
  if (kind === 5)
    return JSON.stringify({ ...good, id: chance.pick<Json>([hostileString(chance), hostileValue(chance)]) })
  // What is inside is spoiled more often than the envelope.
  if (kind <= 8) return JSON.stringify({ ...good, params: mutate(good['params'] ?? {}, chance) })
  return JSON.stringify(mutate(good, chance))
}

/** Whole requests one after the other; each is to be answered, with a head at least. */
async function sendEach(round: Round, connection: Connection, bytes: () => Buffer): Promise<Connection> {
  let current = connection
  for (let index = 0; index < MESSAGES && !round.over(); index++) {
    if (current.closed) current = await round.connect(connection.who)
    const before = current.heads.length
    current.send(bytes())
    await round.heads(current, before + 1)
    // An answer that stays open holds its connection.
    if (!(await current.until(() => current.answers.length > before, 300)))
      current = await round.connect(connection.who)
  }
  return current
}

const modern: Attack = {
  kind: 'messages-modern',
  about: 'spoiled messages of 2026-07-28',
  async run(round) {
    const { chance, target } = round
    const who = chance.pick(IDENTITIES)
    const path = chance.oneIn(6) ? '/guarded/stateless' : openPath(chance)
    await sendEach(round, await round.connect(who), () => {
      const good = call(round, modernMeta())
      const method = String(good['method'])
      const headers = modernHeaders(method, (good['params'] ?? {}) as Fields)
      return requestBytes(target, { path, who, headers, body: spoiled(round, good) })
    })
  },
}

const stateless: Attack = {
  kind: 'messages-stateless',
  about: 'spoiled messages of older revisions, without sessions',
  async run(round) {
    const { chance, target } = round
    const who = chance.pick(IDENTITIES)
    const revision = chance.pick([...REVISIONS, undefined])
    await sendEach(round, await round.connect(who), () =>
      requestBytes(target, {
        path: '/stateless',
        who,
        headers: { 'MCP-Protocol-Version': revision },
        body: spoiled(round, call(round)),
      }),
    )
  },
}

async function leave(round: Round, session: HostileSession, connection: Connection) {
  if (!round.chance.oneIn(2)) return
  const current = connection.closed ? await round.connect(session.who) : connection
  const before = current.answers.length
  current.send(onSession(round, session, 'DELETE'))
  await round.answers(current, before + 1)
}

const sessions: Attack = {
  kind: 'messages-session',
  about: 'spoiled messages in sessions',
  async run(round) {
    const { chance } = round
    const connection = await round.connect(chance.pick(IDENTITIES))
    const path = chance.pick(['/', '/policed', '/t'])
    const session = await openSession(round, connection, { path, revision: chance.pick(REVISIONS) })
    if (!session) return
    const last = await sendEach(round, connection, () => inSession(round, session, spoiled(round, call(round))))
    await leave(round, session, last)
  },
}

const initializing: Attack = {
  kind: 'messages-initialize',
  about: 'spoiled handshakes',
  pause: 20,
  async run(round) {
    const { chance, target } = round
    const who = chance.pick(IDENTITIES)
    const params = {
      protocolVersion: chance.pick(REVISIONS),
      capabilities: { roots: {} },
      clientInfo: { name: 'x', version: '1' },
    }
    await sendEach(round, await round.connect(who), () => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: mutate(params, chance) })
      return requestBytes(target, { path: openPath(chance), who, body })
    })
  },
}

/** Calls of tools whose arguments are spoiled, in an envelope that is not. */
const tools: Attack = {
  kind: 'tool-arguments',
  about: 'spoiled arguments of tools, prompts, templates and completions',
  async run(round) {
    const { chance, target } = round
    const who = chance.pick(IDENTITIES)
    await sendEach(round, await round.connect(who), () => {
      const [method, params] = chance.pick(
        METHODS.filter(([name]) => /^(?:tools\/call|prompts|resources\/read|completion)/.test(name)),
      )
      const key = chance.pick(['arguments', ...Object.keys(params)])
      return modernBytes(
        target,
        method,
        { ...params, [key]: mutate(params[key] ?? {}, chance) },
        { path: openPath(chance), who },
      )
    })
  },
}

export const messageAttacks: readonly Attack[] = [modern, stateless, sessions, initializing, tools]
