// Bodies of the maximum size, in every field that can cause work or memory use.
import { initializeParams, message, modernBytes, modernMeta, requestBytes } from '../requests.ts'
import type { Attack, Round } from '../round.ts'
import { inSession, openSession } from '../session.ts'

const MOST = 4 * 1024 * 1024 - 20_000

type Bulk = (round: Round) => Buffer | Promise<Buffer | undefined>

const toolCall = ({ target }: Round, args: Record<string, never> | object, name = 'register') =>
  modernBytes(target, 'tools/call', { name, arguments: args as never })

const fill = (text: string, bytes = MOST) => text.repeat(Math.floor(bytes / text.length))

const BULKS: Readonly<Record<string, Bulk>> = {
  'empty objects and one __proto__': ({ target }) =>
    requestBytes(target, {
      body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${fill('{},')}{"__proto__":1}]}}`,
    }),
  'empty objects': ({ target }) =>
    requestBytes(target, { body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${fill('{},')}{}]}}` }),
  'escapes of proto': ({ target }) =>
    requestBytes(target, {
      body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":[${fill('"\\u005f\\u005fproto__",', MOST / 2)}1]}}`,
    }),
  'white space': ({ target }) => requestBytes(target, { body: `${fill(' ')}{}` }),
  brackets: ({ target }) => requestBytes(target, { body: fill('[') }),
  'a batch of many': ({ target }) => requestBytes(target, { path: '/stateless', body: `[${fill('{},')}{}]` }),
  'a batch of fifty large ones': ({ target }) => {
    const one = message({
      id: 1,
      method: 'tools/call',
      params: { name: 'echo', arguments: { text: 'x'.repeat(70_000) } },
    })
    return requestBytes(target, { path: '/stateless', body: `[${Array.from({ length: 50 }, () => one).join(',')}]` })
  },
  'not UTF-8': ({ target }) => requestBytes(target, { body: Buffer.alloc(MOST, 0xff) }),
  'many keys': round => {
    const length = round.chance.pick([90_000, 200_000])
    return toolCall(round, Object.fromEntries(Array.from({ length }, (_, index) => [`k${index}`, index])))
  },
  'many tags': round => {
    const length = round.chance.pick([90_000, 300_000])
    return toolCall(round, { name: 'a', tags: Array.from({ length }, (_, index) => `t${index}`) })
  },
  'many numbers': round =>
    toolCall(round, { name: 'a', tags: Array.from({ length: 1_900_000 }, (_, index) => index % 10) }),
  'a long name': round => toolCall(round, { name: 'a-'.repeat(1_500_000) }),
  'a long mail': round => toolCall(round, { name: 'a', mail: `${'a.'.repeat(1_000_000)}@` }),
  'a long page': round => toolCall(round, { name: 'a', page: `http://${'a:'.repeat(1_000_000)}` }),
  'a long text': round => toolCall(round, { text: fill('"') }, 'echo'),
  'a long tool name': round => toolCall(round, {}, fill('x', 60_000)),
  'a long method': ({ target }) =>
    requestBytes(target, { path: '/stateless', body: message({ id: 1, method: fill('m') }) }),
  'a long id': ({ target, chance }) =>
    requestBytes(target, {
      path: '/stateless',
      body: message({ id: fill('i', chance.pick([2_000, MOST])), method: 'tools/list' }),
    }),
  'a long uri': ({ target }) =>
    requestBytes(target, {
      path: '/stateless',
      body: message({ id: 1, method: 'resources/read', params: { uri: `family1://${fill('a/')}` } }),
    }),
  'long URIs to listen to': ({ target, chance }) => {
    const uris = Array.from(
      { length: 60 },
      (_, index) => `family${index % 20}://${chance.pick(['a', '/', '%41', '%'])}/${fill('a/', 64_000)}`,
    )
    return modernBytes(target, 'subscriptions/listen', { notifications: { resourceSubscriptions: uris } })
  },
  'many URIs to listen to': ({ target }) => {
    const uris = Array.from({ length: 1_000 }, (_, index) => `books://fiction/${index}${'x'.repeat(3_000)}`)
    return modernBytes(target, 'subscriptions/listen', { notifications: { resourceSubscriptions: uris } })
  },
  'a long cursor': ({ target }) => modernBytes(target, 'tools/list', { cursor: fill('c') }),
  'a long completion': ({ target }) => {
    const ref = { type: 'ref/prompt', name: 'review' }
    return modernBytes(target, 'completion/complete', { ref, argument: { name: 'shelf', value: fill('v') } })
  },
  'long client info': ({ target }) => {
    const params = { ...initializeParams(), clientInfo: { name: fill('n'), version: '1' } }
    return requestBytes(target, { body: message({ id: 1, method: 'initialize', params }) })
  },
  'long capabilities': ({ target }) => {
    const experimental = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`c${index}`, {}]))
    return requestBytes(target, {
      body: message({ id: 1, method: 'initialize', params: initializeParams('2025-11-25', { experimental }) }),
    })
  },
  'long metadata': ({ target }) => {
    const _meta = { ...modernMeta(), 'x/y': fill('m'), progressToken: fill('p', 100_000) }
    return modernBytes(target, 'tools/call', { name: 'talk', arguments: {}, _meta })
  },
  async 'watching many'(round) {
    const connection = await round.connect('anonymous', '127.0.0.6')
    const session = await openSession(round, connection)
    if (!session) return undefined
    for (let index = 0; index < 20; index++) {
      const params = { uri: `books://fiction/${index}${'x'.repeat(64_000)}` }
      connection.send(inSession(round, session, message({ id: index, method: 'resources/subscribe', params })))
      await round.answers(connection, index + 2)
    }
    return inSession(
      round,
      session,
      message({
        id: fill('i', 300_000),
        method: 'tools/call',
        params: { name: 'talk', _meta: { progressToken: fill('t', 300_000) } },
      }),
    )
  },
}

const NAMES = Object.keys(BULKS)

const bulk: Attack = {
  kind: 'bulk',
  about: 'four megabytes in every place that could be slow or kept',
  pause: 200,
  async run(round) {
    const connection = await round.connect('anonymous', '127.0.0.6')
    // Each by turns: one of them alone may be what stalls.
    const bytes = await BULKS[NAMES[round.index % NAMES.length] ?? '']?.(round)
    if (!bytes) return
    await connection.sendAll(bytes)
    await round.heads(connection, 1)
    await connection.until(() => connection.answers.length > 0, 500)
  },
}

export const bulkAttacks: readonly Attack[] = [bulk]
