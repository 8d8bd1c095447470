import { expect } from 'chai'
import fc from 'fast-check'
import { defineTool } from '../../../core/index.ts'
import { HANDSHAKE_REVISIONS, MODERN_REVISION } from '../../../core/transport.ts'
import { anyText } from '../../support/any-text.ts'
import { legacy, modern, post, type RpcAnswer } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { caseCount } from '../../support/thorough.ts'

const echo = defineTool({
  name: 'echo',
  input: { type: 'object', properties: { text: { type: 'string' } } },
  handler: args => JSON.stringify(args),
})

let url: string
before(async () => {
  const routes = { '/': { toolsets: 'all' } }
  ;({ url } = await startHost({ stateless: true, toolsets: { all: [echo] }, routes }))
})
after(stopHosts)

/** Every revision that a header can name, and none; true where its error answers have `id: null`. */
const REVISIONS: Array<[string | undefined, boolean]> = [
  [MODERN_REVISION, false],
  ...HANDSHAKE_REVISIONS.map((revision): [string, boolean] => [revision, revision < '2025-11-25']),
  [undefined, false],
]
const under = (revision: string | undefined, body: string | Uint8Array) =>
  post(url, body, { 'MCP-Protocol-Version': revision })

/** Refused alike under each revision, without an id or with null as the revision has it. */
async function expectRefused(body: string | Uint8Array, code: number) {
  for (const [revision, nullId] of REVISIONS) {
    const { status, message } = await under(revision, body)
    expect([status, message.error.code], `${revision}: ${JSON.stringify(message)}`).to.deep.equal([400, code])
    expect(message.jsonrpc).to.equal('2.0')
    if (nullId) expect(message, revision).to.have.property('id', null)
    else expect(message, revision).not.to.have.property('id')
  }
}

describe('Invalid input', () => {
  /** The process lives, and serves both eras. */
  afterEach(async () => {
    const { message } = await modern(url, 'tools/call', { name: 'echo', arguments: { text: 'alive' } })
    expect(message.result.content[0].text).to.equal('{"text":"alive"}')
    expect((await legacy(url, 'ping')).message.result).to.deep.equal({})
  })

  describe('Body encoding', () => {
    it('answers 400 -32700 to invalid JSON', async () => {
      for (const body of ['{', '{"jsonrpc":"2.0",}', 'nonsense', "{'a':1}", '{"a":1}{"b":2}', '[1,', 'NaN', '\u0000']) {
        await expectRefused(body, -32700)
      }
    })

    it('answers 400 -32700 to invalid UTF-8', async () => {
      for (const bytes of [[0xff], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0x22, 0xe2, 0x82, 0x22]]) {
        await expectRefused(Uint8Array.from(bytes), -32700)
      }
      const utf16 = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}', 'utf16le')
      await expectRefused(utf16, -32700)
    })

    it('answers 400 -32600 to an empty or blank body', async () => {
      for (const body of ['', ' ', '\r\n\t']) await expectRefused(body, -32600)
    })

    it('answers 400 -32600 to nesting deeper than 128 levels, closed or not', async () => {
      const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
      const within = (value: string) => `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":${value}}}`
      await expectRefused(within(nested(200)), -32600)
      await expectRefused('['.repeat(60_000), -32600)
      await expectRefused(`{"a":`.repeat(10_000), -32600)
      expect((await under('2025-06-18', within(nested(100)))).message.result).to.deep.equal({})
    })

    it('answers 400 -32600 to prototype-polluting keys, without effect', async () => {
      const entries = [
        '"__proto__":{"polluted":1}',
        '"__proto__":1',
        '"\\u005f\\u005fproto__":{"polluted":1}',
        '"constructor":{"prototype":{"polluted":1}}',
      ]
      for (const entry of entries) {
        await expectRefused(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{${entry}}}`, -32600)
        await expectRefused(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":[{${entry}}]}}`, -32600)
        await expectRefused(`{${entry},"jsonrpc":"2.0","id":1,"method":"ping"}`, -32600)
      }
      expect(({} as Record<string, unknown>)['polluted']).to.equal(undefined)
    })
  })

  describe('Invalid JSON-RPC messages', () => {
    it('answers 400 -32600 to other JSON shapes', async () => {
      const shapes = [5, 'text', null, true, {}, { id: null }, { jsonrpc: '2.0', id: null, method: 'ping' }]
      for (const shape of shapes) await expectRefused(JSON.stringify(shape), -32600)
    })

    it('answers 400 -32600 to an id that is not a string or safe integer', async () => {
      for (const id of ['1.5', '9007199254740992', '1e400', 'true', '{}', '[1]']) {
        await expectRefused(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`, -32600)
      }
    })

    it('refuses with the id of the message if it is readable, including 0 and ""', async () => {
      const shapes = [
        { method: 'ping' },
        { jsonrpc: '1.0', method: 'ping' },
        { jsonrpc: 2, method: 'ping' },
        { jsonrpc: '2.0' },
        { jsonrpc: '2.0', method: 5 },
        { jsonrpc: '2.0', method: null },
        { jsonrpc: '2.0', method: 'ping', params: [] },
        { jsonrpc: '2.0', method: 'ping', params: 'x' },
        { jsonrpc: '2.0', error: 'text' },
      ]
      for (const id of [0, '', 'a', -1]) {
        for (const shape of shapes) {
          for (const revision of [MODERN_REVISION, '2025-11-25', '2025-03-26']) {
            const { status, message } = await under(revision, JSON.stringify({ ...shape, id }))
            expect([status, message.error.code, message.id], JSON.stringify(shape)).to.deep.equal([400, -32600, id])
          }
        }
      }
    })

    it('names the problem without echoing the input', async () => {
      const { text } = await under(undefined, '{"secret":"in the body"')
      expect(text).not.to.include('secret')
    })

    it('handles members and parameters of extreme length like others', async () => {
      const long = 'n'.repeat(50_000)
      expect((await legacy(url, long)).message.error.code).to.equal(-32601)
      expect((await legacy(url, 'tools/call', { name: long })).message.error.code).to.equal(-32602)
      const { status, message } = await legacy(url, 'ping', {}, { id: long })
      expect([status, message.error.code, 'id' in message]).to.deep.equal([400, -32600, false])
      const keyed = (key: string) => legacy(url, 'tools/call', { name: 'echo', arguments: { [key]: 1 } })
      expect((await keyed(long.slice(0, 8_000))).status).to.equal(200)
      const refused = await keyed(long)
      expect([refused.status, refused.message.error.code]).to.deep.equal([400, -32600])
    })
  })

  describe('Properties', () => {
    const expectAnswer = ({ status, text, message }: RpcAnswer, sent: string) => {
      expect([200, 202, 400, 404], sent).to.include(status)
      if (status === 202) return expect(text).to.equal('')
      for (const one of [message].flat())
        expect(one, sent).to.include({ jsonrpc: '2.0' }).and.not.have.any.keys('method')
      return undefined
    }
    const revision = fc.constantFrom(...REVISIONS.map(([name]) => name))

    it('any text gets a JSON-RPC error or 202', async () => {
      const text = fc.oneof(anyText(), fc.json(), fc.uint8Array())
      await fc.assert(
        fc.asyncProperty(text, revision, async (body, version) => {
          const answer = await under(version, body)
          expectAnswer(answer, String(body))
          if (answer.status !== 202) expect(answer.message.error.code).to.be.oneOf([-32700, -32600])
        }),
        { numRuns: caseCount(300, 20) },
      )
    })

    it('any near-valid message is answered without an internal error', async () => {
      const methods = [
        'ping',
        'initialize',
        'tools/list',
        'tools/call',
        'resources/read',
        'prompts/get',
        'server/discover',
      ]
      const fields = fc.record(
        {
          jsonrpc: fc.constantFrom('2.0', '2.0', '2.0', 2, null),
          id: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
          method: fc.oneof(fc.constantFrom(...methods, 'completion/complete', 'notifications/x'), fc.jsonValue()),
          params: fc.oneof(
            fc.jsonValue(),
            fc.dictionary(
              fc.constantFrom('name', 'uri', 'arguments', 'cursor', 'ref', 'argument', '_meta'),
              fc.jsonValue(),
            ),
          ),
          result: fc.jsonValue(),
        },
        { requiredKeys: ['jsonrpc', 'method'] },
      )
      const body = fc.oneof({ weight: 4, arbitrary: fields }, fc.array(fields, { maxLength: 4 }))
      await fc.assert(
        fc.asyncProperty(body, revision, async (value, version) => {
          const sent = JSON.stringify(value)
          const answer = await under(version, sent)
          expectAnswer(answer, sent)
          for (const one of [answer.message].flat()) expect(one?.error?.code, sent).not.to.equal(-32603)
        }),
        { numRuns: caseCount(300, 20) },
      )
    })
  })
})
