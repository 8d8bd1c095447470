// Tests the conversion of tool, resource and prompt return values into protocol results.
import { expect } from 'chai'
import {
  type ContentBlock,
  definePrompt,
  defineResource,
  defineTool,
  type JsonSchema,
  ToolError,
} from '../../core/index.ts'
import type { Revision } from '../../core/plugin.ts'
import { legacy, modern, type RpcMessage } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

const text = (value: string) => ({ type: 'text' as const, text: value })
const structured = (value: unknown) => ({ content: [text(JSON.stringify(value))], structuredContent: value })

let url: string
let log: LogLine[]
/** What the handlers return; each test sets it before it calls. */
let returned: unknown

const give = () => returned as never
const withOutput = (name: string, output: JsonSchema) => defineTool({ name, output, handler: give })

before(async () => {
  const all = [
    defineTool({ name: 'free', handler: give }),
    withOutput('object', { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] }),
    withOutput('dated', { type: 'object', properties: { at: { type: 'string', format: 'date-time' } } }),
    defineTool({
      name: 'refuses',
      output: { type: 'object', required: ['a'] },
      handler() {
        throw new ToolError('not found')
      },
    }),
    withOutput('array', { type: 'array' }),
    withOutput('number', { type: 'number' }),
    withOutput('text', { type: 'string' }),
    withOutput('nothing', { type: 'null' }),
    defineResource({ name: 'resource', uri: 'r:one', mimeType: 'text/plain', handler: give }),
    definePrompt({ name: 'prompt', description: 'A prompt.', handler: give }),
  ]
  ;({ url, log } = await startHost({ stateless: true, toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)
beforeEach(() => {
  log.length = 0
})

/** The answer's result without what every result of its revision has; or its error. */
function bare({ result, error }: RpcMessage) {
  if (error) return { error: error.code }
  const { resultType: _, ttlMs: __, cacheScope: ___, _meta, ...rest } = result
  return rest
}

async function ask(method: string, params: Record<string, unknown>, value: unknown, revision?: Revision) {
  returned = value
  const { message } = await (revision ? legacy(url, method, params, { revision }) : modern(url, method, params))
  return bare(message)
}

const call = (name: string, value: unknown, revision?: Revision) => ask('tools/call', { name }, value, revision)
const errors = () => log.filter(({ level }) => level === 'error').map(({ err }) => (err as Error).message)

const blocks: ContentBlock[] = [
  { type: 'text', text: 'words', annotations: { audience: ['user'], priority: 0.5 }, _meta: { 'a.example/b': 1 } },
  { type: 'image', data: 'aGk=', mimeType: 'image/png' },
  { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
  { type: 'resource_link', uri: 'r:one', name: 'one', mimeType: 'text/plain', size: 3 },
  { type: 'resource', resource: { uri: 'r:two', text: 'two', mimeType: 'text/plain' } },
  { type: 'resource', resource: { uri: 'r:three', blob: 'aGk=' } },
]

describe('Tool results', () => {
  const cases: Array<[string, unknown, object]> = [
    ['text', 'hello', { content: [text('hello')] }],
    ['an empty text', '', { content: [text('')] }],
    ['a number', -1.5, { content: [text('-1.5')] }],
    ['zero', 0, { content: [text('0')] }],
    ['a boolean', false, { content: [text('false')] }],
    ['null', null, { content: [] }],
    ['nothing', undefined, { content: [] }],
    ['an object', { a: 1, b: undefined }, { content: [text('{"a":1}')], structuredContent: { a: 1 } }],
    ['an object of no keys', {}, structured({})],
    ['an array', [1, 'two', null], structured([1, 'two', null])],
    ['an empty array', [], structured([])],
    ['a date', new Date(0), structured('1970-01-01T00:00:00.000Z')],
    ['an object with toJSON', { toJSON: () => ({ own: true }) }, structured({ own: true })],
    [
      'an object with the `type` of a content block',
      { type: 'image', width: 5 },
      structured({ type: 'image', width: 5 }),
    ],
    ['a list of such', [{ type: 'resource', id: 1 }], structured([{ type: 'resource', id: 1 }])],
    ['an object whose `content` is not a content block', { content: ['a'] }, structured({ content: ['a'] })],
    ['every kind of block', blocks, { content: blocks }],
    ['a whole result', { content: [text('a')], isError: true }, { content: [text('a')], isError: true }],
    ['a whole result of no content', { content: [], structuredContent: 5 }, { content: [], structuredContent: 5 }],
  ]
  for (const [what, value, expected] of cases) {
    it(`accept ${what}`, async () => {
      expect(await call('free', value)).to.deep.equal(expected)
      expect(errors()).to.deep.equal([])
    })
  }

  const bytes: Array<[string, unknown]> = [
    ['a Buffer', Buffer.from('hi')],
    ['a Uint8Array', new Uint8Array([104, 105])],
    ['a data: URI', 'data:image/png;base64,aGk='],
    ['base64 without padding', 'aGk'],
    ['base64 in lines', 'aG\r\nk='],
  ]
  for (const [what, data] of bytes) {
    it(`are sent as base64 if a content block has ${what}`, async () => {
      const image = { type: 'image', data, mimeType: 'image/png' }
      const resource = { type: 'resource', resource: { uri: 'r:two', blob: data } }
      const sent = [
        { ...image, data: 'aGk=' },
        { type: 'resource', resource: { uri: 'r:two', blob: 'aGk=' } },
      ]
      expect(await call('free', [image, resource])).to.deep.equal({ content: sent })
      expect(await call('free', image)).to.deep.equal({ content: [sent[0]] })
      expect(await call('free', { content: [image] })).to.deep.equal({ content: [sent[0]] })
      expect(await call('object', { content: [image], structuredContent: { a: 1 } })).to.deep.equal({
        content: [sent[0]],
        structuredContent: { a: 1 },
      })
      expect(await call('object', { content: [image], isError: true })).to.deep.equal({
        content: [sent[0]],
        isError: true,
      })
      expect(await ask('prompts/get', { name: 'prompt' }, [{ role: 'user', content: image }])).to.deep.include({
        messages: [{ role: 'user', content: sent[0] }],
      })
      const contents = [{ uri: 'r:one', mimeType: 'text/plain', blob: 'aGk=' }]
      expect(await ask('resources/read', { uri: 'r:one' }, { blob: data })).to.deep.equal({ contents })
      const whole = { contents: [{ uri: 'r:one', mimeType: 'text/plain', blob: data }] }
      expect(await ask('resources/read', { uri: 'r:one' }, whole)).to.deep.equal({ contents })
      expect(errors()).to.deep.equal([])
    })
  }

  it('have bytes as base64 in structured content and as the only value', async () => {
    expect(await call('free', Buffer.from('hi'))).to.deep.equal({ content: [text('aGk=')] })
    expect(await call('text', new Uint8Array([104, 105]))).to.deep.equal({
      content: [text('aGk=')],
      structuredContent: 'aGk=',
    })
    const value = { a: { empty: {}, raw: Buffer.from('hi') }, list: [new Uint8Array([104, 105])] }
    const sent = { a: { empty: {}, raw: 'aGk=' }, list: ['aGk='] }
    expect(await call('free', value)).to.deep.equal(structured(sent))
    expect(await call('free', { content: [], structuredContent: value })).to.deep.equal({
      content: [],
      structuredContent: sent,
    })
    expect(await call('object', { a: 1, raw: Buffer.from('hi') })).to.deep.equal(structured({ a: 1, raw: 'aGk=' }))
  })

  const notBase64 = ['https://a.example/b.png', '_-8=', 'data:image/svg+xml,%3Csvg%3E', 'a', 'not base64!']
  for (const data of notBase64) {
    it(`reject the data ${data}: the call fails and the log has the location`, async () => {
      const image = { type: 'image', data, mimeType: 'image/png' }
      expect(await call('free', [text('a'), image])).to.deep.equal({ content: [text('free failed')], isError: true })
      const read = await ask('resources/read', { uri: 'r:one' }, { contents: [{ uri: 'r:one', blob: data }] })
      const prompt = await ask('prompts/get', { name: 'prompt' }, [{ role: 'user', content: image }])
      expect([read, prompt]).to.deep.equal([{ error: -32603 }, { error: -32603 }])
      const places = errors().map(message => message.split(' ')[0])
      expect(places).to.deep.equal(['content[1].data', 'contents[0].blob', 'messages[0].content.data'])
    })
  }

  for (const block of blocks) {
    it(`accept a single ${block.type} block with all its fields`, async () => {
      expect(await call('free', block)).to.deep.equal({ content: [block] })
    })
  }

  it("merge `_meta` of a full result with the host's", async () => {
    returned = { content: [], _meta: { 'a.example/b': 1 } }
    const { _meta } = (await modern(url, 'tools/call', { name: 'free' })).message.result
    expect(_meta).to.have.all.keys('a.example/b', 'io.modelcontextprotocol/serverInfo')
  })

  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  const impossible: Array<[string, unknown]> = [
    ['a function', () => 'a'],
    ['a symbol', Symbol('a')],
    ['a bigint', 5n],
    ['a bigint inside', { a: 5n }],
    ['a circle', circle],
    ['a Map', new Map([['a', 1]])],
    ['a Set inside', { a: [new Set([1])] }],
    ['a Float64Array inside', { a: new Float64Array([1]) }],
    ['a promise inside', { a: Promise.resolve(1) }],
    ['a value without JSON representation', { toJSON: () => undefined }],
  ]
  for (const [what, value] of impossible) {
    it(`reject ${what}: the call fails and is logged`, async () => {
      expect(await call('free', value)).to.deep.equal({ content: [text('free failed')], isError: true })
      expect(errors()).to.have.length(1)
    })
  }

  it('are converted to objects and content types that older protocol versions support', async () => {
    expect(await call('free', { a: 1 }, '2025-11-25')).to.deep.equal(structured({ a: 1 }))
    for (const value of [[1, 2], new Date(0)]) {
      const content = [text(JSON.stringify(value))]
      expect(await call('free', value, '2025-11-25')).to.deep.equal({ content })
    }
    expect(await call('free', blocks, '2025-06-18')).to.deep.equal({ content: blocks })
    const [words, image, audio, link, ...embedded] = blocks
    const linkInWords = text('one: r:one')
    const march = { content: [words, image, audio, linkInWords, ...embedded] }
    expect(await call('free', blocks, '2025-03-26')).to.deep.equal(march)
    expect(link?.type).to.equal('resource_link')
  })
})

describe('Output schema', () => {
  const kept: Array<[string, unknown, object]> = [
    ['object', { a: 1 }, structured({ a: 1 })],
    ['object', { content: [], structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
    ['dated', { at: new Date(0) }, structured({ at: '1970-01-01T00:00:00.000Z' })],
    ['array', [{ type: 'text', text: 'a' }], structured([{ type: 'text', text: 'a' }])],
    ['array', [], structured([])],
    ['number', 5, { content: [text('5')], structuredContent: 5 }],
    ['text', '', { content: [text('')], structuredContent: '' }],
    ['nothing', null, { content: [text('null')], structuredContent: null }],
  ]
  for (const [name, value, expected] of kept) {
    it(`of ${name} accepts ${JSON.stringify(value)} as structured content`, async () => {
      expect(await call(name, value)).to.deep.equal(expected)
      expect(errors()).to.deep.equal([])
    })
  }

  const broken: Array<[string, unknown]> = [
    ['object', { a: 'one' }],
    ['object', 'text'],
    ['object', undefined],
    ['object', { content: [{ type: 'text', text: 'no structured content' }] }],
    ['dated', { at: new Date(Number.NaN) }],
    ['array', { 0: 'a' }],
    ['number', Number.NaN],
    ['nothing', undefined],
  ]
  for (const [name, value] of broken) {
    it(`of ${name} fails the call for ${String(JSON.stringify(value))} and logs it`, async () => {
      expect(await call(name, value)).to.deep.equal({ content: [text(`${name} failed`)], isError: true })
      expect(errors()).to.have.length(1)
      expect(errors()[0]).to.match(new RegExp(`^the result of ${name} does not match its output schema: `))
    })
  }

  it('does not apply to error results and ToolError', async () => {
    const failed = { content: [text('not found')], isError: true }
    expect(await call('object', failed)).to.deep.equal(failed)
    expect(await call('refuses', undefined)).to.deep.equal(failed)
    expect(errors()).to.deep.equal([])
  })
})

describe('Resource results', () => {
  const read = (value: unknown) => ask('resources/read', { uri: 'r:one' }, value)
  const about = { uri: 'r:one', mimeType: 'text/plain' }

  it('accept text, bytes, contents, a list of contents or a full result', async () => {
    const other = { uri: 'r:two', mimeType: 'image/png', blob: 'aGk=' }
    const cases: Array<[unknown, object[]]> = [
      ['hi', [{ ...about, text: 'hi' }]],
      ['', [{ ...about, text: '' }]],
      [Buffer.from('hi'), [{ ...about, blob: 'aGk=' }]],
      [new Uint8Array([104, 105]), [{ ...about, blob: 'aGk=' }]],
      [{ text: 'hi', mimeType: 'text/html' }, [{ ...about, text: 'hi', mimeType: 'text/html' }]],
      [
        [{ text: 'a' }, other],
        [{ ...about, text: 'a' }, other],
      ],
      [[], []],
      [{ contents: [other] }, [other]],
    ]
    for (const [value, contents] of cases) expect(await read(value)).to.deep.equal({ contents })
  })

  it('report an unknown resource for undefined', async () => {
    for (const value of [undefined, null]) {
      expect(await read(value)).to.deep.equal({ error: -32602 })
      expect(await ask('resources/read', { uri: 'r:one' }, value, '2025-11-25')).to.deep.equal({ error: -32002 })
    }
  })

  it('reject other values: the read fails and is logged', async () => {
    for (const value of [5, true, {}, ['a'], { contents: 'a' }, new Date(0)]) {
      log.length = 0
      expect(await read(value)).to.deep.equal({ error: -32603 })
      expect(errors().join('\n')).to.match(/^a resource .*$/)
    }
  })
})

describe('Prompt results', () => {
  const get = (value: unknown) => ask('prompts/get', { name: 'prompt' }, value)
  const description = 'A prompt.'

  it('accept text, messages or a full result', async () => {
    const messages = blocks.map(content => ({ role: 'assistant', content }))
    expect(await get('hi')).to.deep.equal({ description, messages: [{ role: 'user', content: text('hi') }] })
    expect(await get(messages)).to.deep.equal({ description, messages })
    expect(await get({ description: 'Another.', messages })).to.deep.equal({ description: 'Another.', messages })
  })

  it('reject other values: the request fails and is logged', async () => {
    for (const value of [undefined, null, 5, {}, { messages: 'a' }]) {
      log.length = 0
      expect(await get(value)).to.deep.equal({ error: -32603 })
      expect(errors().join('\n')).to.match(/^a prompt .*$/)
    }
  })
})
