// Invalid, repeated, forged or missing responses to requests of the host, and responses without a request.
import type { Connection } from '../connection.ts'
import { EVERY_CAPABILITY, type Fields, type Json, message, modernBytes, modernMeta } from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { type HostileSession, inSession, openSession } from '../session.ts'
import { hostileValue, mutate } from '../values.ts'

const ASKING = ['ask', 'sample', 'roots', 'ask_all'] as const
const GOOD: Json = { action: 'accept', content: { name: 'x' }, roots: [], role: 'assistant', content_: 1, model: 'm' }

/** The questions that came on a connection so far. */
const questionsOn = ({ text }: Connection): string[] =>
  [...text.matchAll(/"id":("[^"]+"),"method":"(?:elicitation|sampling|roots)/g)].map(([, id]) => JSON.parse(id ?? '""'))

function oddAnswer({ chance }: Round, id: Json): Fields {
  const kind = chance.below(8)
  if (kind === 0) return { id, error: { code: -1, message: { toString: 1 } } }
  if (kind === 1) return { id, error: { message: hostileValue(chance) } }
  if (kind === 2) return { id, error: hostileValue(chance) }
  if (kind === 3) return { id, result: hostileValue(chance) }
  if (kind === 4) return { id, result: mutate(GOOD, chance), error: { code: 1, message: 'both' } }
  if (kind === 5) return { id, result: mutate(GOOD, chance) }
  if (kind === 6) return { id, error: { code: { valueOf: 1 }, message: ['x'], data: hostileValue(chance) } }
  return { id: chance.pick<Json>([id, 'ask-1', 'ask-99999', 0, '__proto__', 'toString']), result: GOOD }
}

async function post(round: Round, session: HostileSession, body: string) {
  const connection = await round.connect(session.who)
  connection.send(inSession(round, session, body))
  await round.heads(connection, 1)
  connection.drop()
}

/** Every call ends, whatever its questions are answered with. */
const answering: Attack = {
  kind: 'odd-answers',
  about: "odd, doubled and wrong answers to a session's questions",
  lanes: 2,
  async run(round) {
    const { chance } = round
    const connection = await round.connect(chance.pick(['anonymous', 'mallory']))
    const session = await openSession(round, connection)
    if (!session) return
    const asking = await round.connect(connection.who)
    const params = { name: chance.pick(ASKING), arguments: {} }
    asking.send(inSession(round, session, message({ id: 'asking', method: 'tools/call', params })))
    await asking.until(() => questionsOn(asking).length > 0, 2_000)
    for (const id of questionsOn(asking)) {
      for (let answer = chance.between(1, 3); answer > 0; answer--)
        await post(round, session, message(oddAnswer(round, id)))
    }
    if (chance.oneIn(4))
      await post(round, session, message({ method: 'notifications/cancelled', params: { requestId: 'asking' } }))
    if (chance.oneIn(6)) return asking.drop()
    await round.answers(asking, 1)
  },
}

const unasked: Attack = {
  kind: 'unasked-answers',
  about: 'answers to questions that were never asked, cancelling what is not there',
  pause: 10,
  async run(round) {
    const { chance } = round
    const connection = await round.connect('anonymous')
    const session = await openSession(round, connection)
    if (!session) return
    for (let index = 0; index < 10; index++) {
      const fields = chance.oneIn(2)
        ? oddAnswer(round, chance.pick<Json>(['ask-1', 1, '', 'x'.repeat(2_000), 1e15]))
        : {
            method: 'notifications/cancelled',
            params: { requestId: hostileValue(chance), reason: hostileValue(chance) },
          }
      const before = connection.heads.length
      connection.send(inSession(round, session, message(fields)))
      await round.heads(connection, before + 1)
      if (connection.closed) return
    }
  },
}

/** The answers of 2026-07-28 travel with the request; the state that came with the questions is spoiled. */
const states: Attack = {
  kind: 'request-states',
  about: 'input_required: spoiled requestState, odd and missing answers',
  pause: 10,
  async run(round) {
    const { chance, target } = round
    const connection = await round.connect(chance.pick(['anonymous', 'mallory']))
    const who = connection.who
    const ask = (more: Fields) => {
      const params = { name: chance.pick(ASKING), arguments: {}, ...more }
      connection.send(modernBytes(target, 'tools/call', params, { who }))
    }
    ask({})
    await round.answers(connection, 1)
    const text = connection.answers[0]?.body.toString() ?? ''
    const state = /"requestState":"([^"]+)"/.exec(text)?.[1] ?? 'none'
    const keys = [...text.matchAll(/"([\w-]+)":\{"method"/g)].map(([, key]) => key ?? '')
    for (let index = 0; index < 4; index++) {
      const at = chance.below(state.length)
      const spoiled = chance.pick<Json>([
        state,
        state,
        `${state.slice(0, at)}A${state.slice(at + 1)}`,
        state.slice(0, at),
        'x'.repeat(70_000),
        hostileValue(chance),
      ])
      const responses = Object.fromEntries([...keys, 'elicit-1'].map(key => [key, mutate(GOOD, chance)]))
      const before = connection.heads.length
      ask({
        requestState: spoiled,
        inputResponses: chance.oneIn(3) ? hostileValue(chance) : (responses as Fields),
        _meta: {
          ...modernMeta(),
          'io.modelcontextprotocol/clientCapabilities': chance.oneIn(4) ? {} : EVERY_CAPABILITY,
        },
      })
      await round.heads(connection, before + 1)
      if (connection.closed) return
    }
  },
}

export const questionAttacks: readonly Attack[] = [answering, unasked, states]
