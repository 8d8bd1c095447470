// Values of wrong types at every position of client messages: each is a client error, never an internal error.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool } from '../../../core/index.ts'
import { definePlugin } from '../../../core/internal.ts'
import { META } from '../../../core/transport.ts'
import { createPuppet } from '../../support/puppet-tool.ts'
import { createMeta, legacy, modern } from '../../support/rpc.ts'
import { openSession, postMessage } from '../../support/session-client.ts'
import { openSseSession } from '../../support/sse-client.ts'
import { type StartedHost, startHost, stopHosts } from '../../support/start-host.ts'
import { selectCases } from '../../support/thorough.ts'

/** Values that a template, a comparison or a copy may trip over. */
const ODD: readonly unknown[] = [
  null,
  true,
  7,
  'text',
  '',
  [],
  [[]],
  {},
  { toString: 1 },
  { toString: 1, valueOf: 1, toJSON: 1 },
  { length: 3 },
  { constructor: 1, hasOwnProperty: 1 },
  [{ toString: 1 }],
]

const ref = { type: 'ref/prompt', name: 'ask' }
const argument = { name: 'a', value: '' }

/** Every method, with params that it takes. */
const METHODS: ReadonlyArray<readonly [method: string, params: Record<string, unknown>]> = [
  [
    'initialize',
    { protocolVersion: '2025-11-25', capabilities: { roots: {} }, clientInfo: { name: 'a', version: '1' } },
  ],
  ['server/discover', {}],
  ['ping', {}],
  ['logging/setLevel', { level: 'info' }],
  ['tools/list', { cursor: '' }],
  ['resources/list', { cursor: '' }],
  ['resources/templates/list', { cursor: '' }],
  ['prompts/list', { cursor: '' }],
  ['tools/call', { name: 'greet', arguments: { who: 'ada' }, requestState: 'x', inputResponses: { a: {} } }],
  ['prompts/get', { name: 'ask', arguments: { a: 'b' }, requestState: 'x', inputResponses: { a: {} } }],
  ['resources/read', { uri: 'test://page/1', requestState: 'x', inputResponses: { a: {} } }],
  ['resources/subscribe', { uri: 'test://page/1' }],
  ['resources/unsubscribe', { uri: 'test://page/1' }],
  ['completion/complete', { ref, argument, context: { arguments: { b: 'c' } } }],
  [
    'completion/complete',
    { ref: { type: 'ref/resource', uri: 'test://page/{id}' }, argument: { name: 'id', value: '' } },
  ],
  ['subscriptions/listen', { notifications: { toolsListChanged: false, resourceSubscriptions: ['test://none'] } }],
]

/** Each of these with one value of it, however deep, another one. */
function* mutations(value: unknown): Generator<unknown> {
  yield* ODD
  if (Array.isArray(value)) {
    for (const [index, part] of value.entries()) for (const other of mutations(part)) yield value.with(index, other)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, part] of Object.entries(value)) {
      for (const other of mutations(part)) yield { ...value, [key]: other }
      const { [key]: _, ...rest } = value as Record<string, unknown>
      yield rest
    }
  }
}

/** As plugins are written: it takes the fields of params for what they should be. */
const trusting = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  setup(host) {
    host.onCall(async (call, next) => {
      const { name, uri } = call.params
      if (name !== undefined || uri !== undefined) `${name ?? uri}`.trim()
      return next()
    })
  },
})

const puppet = createPuppet()
const toolsets = {
  all: [
    puppet.tool,
    defineTool({
      name: 'greet',
      input: { type: 'object', properties: { who: { type: 'string' } } },
      handler: ({ who }, { client }) => `${who} ${client.info?.name}`,
    }),
    definePrompt({
      name: 'ask',
      arguments: {
        a: { complete: (value, { arguments: given }) => [value, ...Object.values(given).map(v => v.trim())] },
      },
      handler: ({ a }) => `${a}`,
    }),
    defineResource({
      name: 'page',
      uriTemplate: 'test://page/{id}',
      complete: { id: () => [] },
      handler: ({ id }) => id,
    }),
  ],
}

let host: StartedHost
let url: string
before(async () => {
  host = await startHost({
    toolsets,
    routes: { '/': { toolsets: 'all' }, '/stateless': { toolsets: 'all', stateless: true, listen: false } },
    plugins: { 'transport-streamable': {}, trusting: trusting() },
  })
  url = host.url
})
after(stopHosts)

interface Outcome {
  readonly status: number
  readonly message?: { readonly error?: { readonly code: number } }
}

/** Neither an error of ours, nor a line in the log that says so. */
function judge({ status, message }: Outcome, sent: unknown) {
  const ours = status >= 500 || message?.error?.code === -32603 || host.log.some(({ level }) => level === 'error')
  const line = host.log.find(({ level }) => level === 'error')
  expect(
    ours,
    `${JSON.stringify(sent)}: ${status} ${JSON.stringify(message?.error)} ${String(line?.['err'])}`,
  ).to.equal(false)
}

describe('Parameters of wrong types', () => {
  before(() => void host.log.splice(0))

  for (const [method, params] of METHODS) {
    it(`get a client error: ${method} with ${Object.keys(params)}`, async () => {
      const session = await openSession(url)
      const clients: ReadonlyArray<(fields: Record<string, unknown>) => Promise<Outcome>> = [
        fields => legacy(`${url}/stateless`, method, fields),
        fields =>
          method === 'initialize'
            ? postMessage(url, { id: 1, method, params: fields })
            : session.request(method, fields),
        ...(method === 'subscriptions/listen'
          ? []
          : [(fields: Record<string, unknown>) => modern(url, method, fields)]),
      ]
      for (const [index, wrong] of selectCases([...mutations(params)], 15).entries()) {
        if (typeof wrong !== 'object' || wrong === null || Array.isArray(wrong)) continue
        const send = clients[index % clients.length] as (typeof clients)[number]
        judge(await send(wrong as Record<string, unknown>), wrong)
      }
      expect((await session.request('ping')).status).to.equal(200)
    })
  }

  it('get a client error in _meta of 2026-07-28 and in notifications', async () => {
    const meta = {
      [META.protocolVersion]: '2026-07-28',
      [META.clientInfo]: { name: 'a', version: '1' },
      [META.clientCapabilities]: { roots: {} },
      [META.logLevel]: 'debug',
      progressToken: 'x',
    }
    for (const _meta of selectCases([...mutations(meta)], 20)) {
      judge(await modern(url, 'tools/call', { name: 'greet', arguments: {}, _meta }), _meta)
    }
    const session = await openSession(url)
    const notifications = [
      ['notifications/cancelled', { requestId: 1, reason: 'no' }],
      ['notifications/progress', { progressToken: 1, progress: 1 }],
      ['notifications/roots/list_changed', {}],
      ['notifications/initialized', {}],
    ] as const
    for (const [method, params] of notifications) {
      for (const wrong of selectCases([...mutations(params)], 8))
        judge(await session.send({ method, params: wrong }), wrong)
    }
    expect((await session.request('ping')).status).to.equal(200)
  })
})

describe('null', () => {
  it('is absent as an optional member of params', async () => {
    const session = await openSession(url)
    const cases: ReadonlyArray<readonly [method: string, params: Record<string, unknown>]> = [
      ['tools/list', { cursor: null }],
      ['prompts/list', { cursor: null, _meta: null }],
      ['tools/call', { name: 'greet', arguments: null, requestState: null, inputResponses: null, task: null }],
      ['tools/call', { name: 'greet', _meta: { progressToken: null } }],
      ['prompts/get', { name: 'ask', arguments: { a: null } }],
      ['prompts/get', { name: 'ask', arguments: null }],
      ['completion/complete', { ref, argument, context: null }],
      ['completion/complete', { ref, argument, context: { arguments: { b: null } } }],
    ]
    for (const [method, params] of cases) {
      const { _meta, ...rest } = params
      const answers = [await session.request(method, params), await modern(url, method, rest)]
      for (const { message } of answers)
        expect(message.result, `${method} ${JSON.stringify(message)}`).to.be.an('object')
    }
    expect((await session.send({ id: 9, method: 'ping', params: null })).message.result).to.deep.equal({})
  })

  it('is absent in what a client says about itself', async () => {
    const clientInfo = { name: 'a', version: '1', title: null, websiteUrl: null, icons: null }
    const capabilities = { roots: null, elicitation: { form: {}, url: null } }
    const params = { protocolVersion: '2025-11-25', clientInfo, capabilities, _meta: null }
    expect((await postMessage(url, { id: 1, method: 'initialize', params })).status).to.equal(200)
    const meta = { [META.clientInfo]: clientInfo, [META.clientCapabilities]: capabilities, [META.logLevel]: null }
    const { message } = await modern(url, 'tools/call', { name: 'greet', arguments: {} }, { meta: createMeta(meta) })
    expect(message.result.content[0].text).to.equal('undefined a')
  })

  it('stays a value within tool arguments, and an error in a required member', async () => {
    const { message } = await modern(url, 'tools/call', { name: 'greet', arguments: { who: null } })
    expect(message.result.isError).to.equal(true)
    expect((await modern(url, 'completion/complete', { ref, argument: null })).message.error.code).to.equal(-32602)
  })

  it('is absent in the answer to an elicitation and to roots/list', async () => {
    const session = await openSession(url, { capabilities: { roots: {}, elicitation: {} } })
    const properties = { a: { type: 'string' }, b: { type: 'string' } } as const
    const requestedSchema = { type: 'object', properties, required: ['a'] } as const
    const answers = [
      { action: 'accept', content: { a: 'x', b: null }, _meta: null },
      { roots: [{ uri: 'file:///a', name: null }], _meta: null },
    ]
    for (const [index, result] of answers.entries()) {
      const opening = session.call('puppet', { name: `null ${index}` }, { id: `null ${index}` })
      const { ctx, finish } = await puppet.call(`null ${index}`)
      const asked = index === 0 ? ctx.elicit({ message: 'a?', requestedSchema }) : ctx.roots()
      const stream = await opening
      const [{ message } = { message: undefined }] = (
        await stream.until(({ message }) => message?.id !== undefined)
      ).slice(-1)
      await session.send({ id: message?.id, result })
      finish(JSON.stringify(await asked))
      const text = (await stream.rest()).at(-1)?.message.result.content[0].text
      const expected = [{ action: 'accept', content: { a: 'x' } }, { roots: [{ uri: 'file:///a' }] }][index]
      expect(JSON.parse(text)).to.deep.equal(expected)
    }
  })
})

describe('Client response of a wrong shape', () => {
  const ANSWERS = [
    ...ODD.map(message => ({ error: { code: 1, message } })),
    ...ODD.map(error => ({ error, result: {} })),
    ...ODD.map(result => ({ result })),
    ...ODD.map(content => ({ result: { action: 'accept', content } })),
    ...ODD.map(action => ({ result: { action, content: {} } })),
    ...ODD.map(roots => ({ result: { roots } })),
    ...ODD.map(uri => ({ result: { roots: [{ uri, name: uri }] } })),
    ...ODD.map(content => ({ result: { model: 'm', role: 'user', content } })),
    ...ODD.map(role => ({ result: { model: role, role, content: { type: 'text', text: 'x' } } })),
  ]
  const form = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] } as const
  const capabilities = { roots: {}, sampling: {}, elicitation: { form: {}, url: {} } }

  it('ends its call without an internal error', async () => {
    host.log.splice(0)
    const session = await openSession(url, { capabilities })
    let ended = 0
    const answers = selectCases(ANSWERS, 8)
    for (const [index, answer] of answers.entries()) {
      for (const kind of ['elicit', 'sample', 'roots'] as const) {
        const name = `${kind} ${index}`
        const opening = session.call('puppet', { name }, { id: name })
        const { ctx, finish } = await puppet.call(name)
        const asked =
          kind === 'elicit'
            ? ctx.elicit({ message: 'a?', requestedSchema: form })
            : kind === 'sample'
              ? ctx.sample({ messages: [], maxTokens: 1 })
              : ctx.roots()
        // What a handler does with an answer of the shape that it was promised.
        const used = asked.then(
          result => {
            if ('roots' in result) return result.roots.map(({ uri, name }) => uri.trim() + (name ?? '').trim()).join()
            if ('model' in result)
              return `${result.model.trim()} ${[result.content].flat().map(({ type }) => `${type}`)}`
            return `${result.action.trim()} ${result.action === 'accept' ? `${result.content?.['a']}`.trim() : ''}`
          },
          (error: Error) => error.message.trim(),
        )
        const stream = await opening
        const events = await stream.until(({ message }) => message?.id !== undefined)
        const told = await session.send({ id: events.at(-1)?.message.id, ...answer })
        expect(told.status, JSON.stringify(answer)).to.be.oneOf([202, 400])
        // What was no message at all answered nothing: the client may try again.
        if (told.status === 400) await session.send({ id: events.at(-1)?.message.id, error: { code: 1, message: 'x' } })
        finish(await used)
        expect((await stream.rest()).at(-1)?.message.result).to.be.an('object')
        ended++
      }
    }
    expect(ended).to.equal(answers.length * 3)
    expect(host.log.filter(({ level }) => level === 'error')).to.deep.equal([])
  })

  it('ends its call over the SSE transport too', async () => {
    const { url } = await startHost({
      toolsets,
      routes: { '/': { toolsets: 'all' } },
      plugins: { 'transport-sse': {} },
    })
    const client = await openSseSession(url, { capabilities })
    await client.post({ id: 'asks', method: 'tools/call', params: { name: 'puppet', arguments: { name: 'by sse' } } })
    const { ctx, finish } = await puppet.call('by sse')
    const asked = ctx.roots().catch((error: Error) => error.message)
    const { id } = await client.next()
    expect((await client.post({ id, error: { code: 1, message: { toString: 1 } } })).status).to.equal(202)
    expect(await asked).to.equal('the client returned an error: an error')
    finish('done')
    expect((await client.next()).result.content[0].text).to.equal('done')
    client.stream.drop()
  })
})
