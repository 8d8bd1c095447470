// Tests `testTool`, `testResource` and `testPrompt`, which run a single definition as on a route.
import { expect } from 'chai'
import { definePrompt, defineResource, defineTool, HostError, ToolError } from 'mcp-host'
import { StartError } from 'mcp-host/plugin'
import { type Answers, testPrompt, testResource, testTool } from 'mcp-host/testing'
import { z } from 'zod'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { SUM } from '../fixtures/sum.ts'

const add = defineTool({
  name: 'add',
  ...SUM,
  handler: ({ a, b }) => ({ sum: a === 13 ? 'unlucky' : a + b }),
})

const QUESTION = {
  message: 'Delete it?',
  requestedSchema: {
    type: 'object',
    properties: { confirm: { type: 'boolean' } },
    required: ['confirm'],
  },
} as const

let runs = 0
const remove = defineTool({
  name: 'remove',
  async handler(_args, { elicit }) {
    runs += 1
    const { action, content } = await elicit(QUESTION)
    return action === 'accept' && content?.['confirm'] === true ? 'deleted' : 'kept'
  },
})

describe('testTool', () => {
  it('returns the client result with text and structured content', async () => {
    const { result, structured, text, isError } = await testTool(add, { a: 1, b: 2 })
    expect(structured).to.deep.equal({ sum: 3 })
    expect({ text, isError }).to.deep.equal({ text: '{"sum":3}', isError: false })
    expect(result.content).to.deep.equal([{ type: 'text', text: '{"sum":3}' }])
  })

  it('validates arguments against the input schema', async () => {
    const { isError, text } = await testTool(add, { a: 1, b: 'two' as never })
    expect(isError).to.equal(true)
    expect(text).to.include('Invalid arguments for add').and.to.include('b')
  })

  it('validates the result against the output schema and reports the hidden error', async () => {
    const { isError, text, error } = await testTool(add, { a: 13, b: 1 })
    expect({ isError, text }).to.deep.equal({ isError: true, text: 'add failed' })
    expect(String(error)).to.include('does not match its output schema')
  })

  it('rejects if the handler does not await its request to the client', async () => {
    const wipe = defineTool({
      name: 'wipe',
      handler: async (_, { elicit }) => {
        void elicit(QUESTION)
        return 'wiped'
      },
    })
    const error = await rejectionOf(testTool(wipe, {}, { answers: [{ action: 'decline' }] }))
    expect(String(error)).to.include('await ctx.elicit')
  })

  it('provides the upstream token of the test by audience, or none', async () => {
    const files = defineTool({
      name: 'files',
      handler: async (_, { upstreamToken }) => (await upstreamToken({ scope: 'Files.Read' })).length,
    })
    expect((await testTool(files, {}, { context: { upstreamToken: async () => 'four' } })).text).to.equal('4')
    const asked: unknown[] = []
    const upstreamToken = async (request: object) => {
      asked.push(request)
      return 'seven..'
    }
    expect((await testTool(files, {}, { context: { upstreamToken } })).text).to.equal('7')
    expect(asked).to.deep.equal([{ scope: 'Files.Read' }])
    const none = await testTool(files)
    expect(none.isError).to.equal(true)
    expect(none.text).to.match(/identity provider/)
    const refused = async () => {
      throw new ToolError('The provider gives no such token.')
    }
    expect((await testTool(files, {}, { context: { upstreamToken: refused } })).text).to.equal(
      'The provider gives no such token.',
    )
    const ended = async () => {
      throw new HostError('unauthorized', { detail: 'the login has ended' })
    }
    const rejection = await rejectionOf(testTool(files, {}, { context: { upstreamToken: ended } }))
    expect(rejection).to.have.property('kind', 'unauthorized')
  })

  it('names the invalid field of a result and the reason', async () => {
    const asking = defineTool({
      name: 'asking',
      handler: async (_, ctx) => {
        const properties = { sure: { type: 'boolean' } } as const
        await ctx.elicit({ message: 'Sure?', requestedSchema: { type: 'object', properties, required: ['sure'] } })
        return 'done'
      },
    })
    const answers = { elicit: { action: 'accept', content: { sure: 'yes' } } } as const
    expect(String(await rejectionOf(testTool(asking, {}, { answers })))).to.match(
      /"elicit-1" "Sure\?".*sure: .*boolean.*"yes"/,
    )
    const shapeless = { elicit: { action: 'yes' } as never }
    expect(String(await rejectionOf(testTool(asking, {}, { answers: shapeless })))).to.contain(
      "write it as { action: '",
    )
  })

  it('returns the text of a ToolError and the original of other errors', async () => {
    const failing = (error: Error) =>
      defineTool({
        name: 'fail',
        handler() {
          throw error
        },
      })
    const told = await testTool(failing(new ToolError('no such city')))
    expect(told).to.include({ isError: true, text: 'no such city', error: undefined })
    const bug = new Error('a bug')
    expect(await testTool(failing(bug))).to.include({ isError: true, text: 'fail failed', error: bug })
  })

  it('treats defaults applied by a schema library as absent arguments', async () => {
    const repeat = defineTool({
      name: 'repeat',
      input: z.object({ text: z.string(), times: z.number().default(2) }),
      handler: ({ text, times }) => text.repeat(times),
    })
    expect((await testTool(repeat, { text: 'ab' })).text).to.equal('abab')
  })

  it('runs with user, headers, route parameters and session, or anonymously', async () => {
    const who = defineTool({
      name: 'who',
      access: 'admin',
      handler: (_args, { user, headers, route, session }) => ({
        user: user ?? null,
        headers,
        route,
        session: session?.id,
      }),
    })
    expect((await testTool(who)).structured).to.deep.equal({
      user: null,
      headers: {},
      route: { path: '/', params: {} },
    })
    const { structured } = await testTool(
      who,
      {},
      {
        user: { subject: 'ann', scopes: ['read'], roles: ['admin'], claims: { tier: 'gold' } },
        headers: { 'x-tenant': 'acme' },
        params: { tenant: 'acme' },
        session: 'session-1',
      },
    )
    expect(structured).to.have.nested.property('user.subject', 'ann')
    expect(structured?.user).to.deep.include({ scopes: ['read'], roles: ['admin'] })
    expect(structured?.user?.claims).to.include({ tier: 'gold', sub: 'ann' })
    expect(structured).to.deep.include({ headers: { 'x-tenant': 'acme' }, session: 'session-1' })
    expect(structured?.route.params).to.deep.equal({ tenant: 'acme' })
  })

  it('records logs, progress and changes of the handler', async () => {
    const busy = defineTool({
      name: 'busy',
      handler(_args, { log, progress, host }) {
        log('debug', { step: 1 }, 'worker')
        progress(1, 2, 'half')
        progress(2, 2)
        host.resourceUpdated('notes://all')
        host.tools.add(defineTool({ name: 'more', handler: () => '' }))
      },
    })
    const { logs, progress, changes, asks } = await testTool(busy)
    expect(logs).to.deep.equal([{ level: 'debug', data: { step: 1 }, logger: 'worker' }])
    expect(progress).to.deep.equal([
      { progress: 1, total: 2, message: 'half' },
      { progress: 2, total: 2 },
    ])
    expect(changes).to.deep.equal([{ changed: 'resource', uri: 'notes://all' }, { changed: 'tools' }])
    expect(asks).to.deep.equal([])
  })

  it('aborts with its signal', async () => {
    const wait = defineTool({
      name: 'wait',
      handler: (_args, { signal }) =>
        new Promise<string>(resolve => signal.addEventListener('abort', () => resolve(`stopped: ${signal.reason}`))),
    })
    const stop = new AbortController()
    const running = testTool(wait, {}, { signal: stop.signal })
    setImmediate(() => stop.abort('enough'))
    expect((await running).text).to.equal('stopped: enough')
  })

  it('rejects an invalid tool with the StartError of startup', async () => {
    const broken = defineTool({ name: 'broken', input: { type: 'string' }, handler: () => '' })
    const error = await rejectionOf(testTool(broken, ''))
    expect(error).to.be.instanceOf(StartError)
    expect(String(error))
      .to.include('tool "broken"')
      .and.to.match(/"object"/)
  })
})

describe('Elicitation, sampling and roots requests in testTool', () => {
  const accept = { action: 'accept', content: { confirm: true } } as const

  for (const [how, answers] of Object.entries({
    'in order': [accept],
    'by its key': { 'elicit-1': accept },
    'by its kind': { elicit: accept },
    'by a function': () => accept,
    'by a function for one': [() => accept],
  })) {
    it(`are answered ${how}`, async () => {
      const { text, asks } = await testTool(remove, {}, { answers })
      expect(text).to.equal('deleted')
      expect(asks).to.deep.equal([{ kind: 'elicit', key: 'elicit-1', params: QUESTION }])
    })
  }

  it('rerun the handler in the newest protocol version and resume it in those with sessions', async () => {
    runs = 0
    await testTool(remove, {}, { answers: [accept] })
    expect(runs).to.equal(2)
    runs = 0
    expect((await testTool(remove, {}, { answers: [accept], revision: '2025-11-25' })).text).to.equal('deleted')
    expect(runs).to.equal(1)
  })

  it('can be declined by the user', async () => {
    expect((await testTool(remove, {}, { answers: [{ action: 'decline' }] })).text).to.equal('kept')
  })

  for (const revision of ['2026-07-28', '2025-06-18'] as const) {
    it(`explain in ${revision} how to provide a missing answer`, async () => {
      const error = await rejectionOf(testTool(remove, {}, { revision }))
      expect(String(error)).to.equal(
        `Error: the handler sent a request (elicit) "Delete it?" and the test has no response: add 'elicit-1', as in ` +
          `answers: { 'elicit-1': { action: 'accept', content: { … } } }`,
      )
    })
  }

  it('reject an answer that violates the requested schema', async () => {
    const answers = [{ action: 'accept', content: { confirm: 'yes' } }] as const
    expect(String(await rejectionOf(testTool(remove, {}, { answers })))).to.include('does not match the request')
  })

  it('support all three kinds, concurrently or not, with custom keys', async () => {
    const curious = defineTool({
      name: 'curious',
      async handler(_args, { elicit, sample, roots }) {
        const [{ roots: found }, { content }] = await Promise.all([
          roots(),
          sample({ messages: [], maxTokens: 10 }, { key: 'idea' }),
        ])
        const { action } = await elicit(QUESTION)
        return { action, content, uri: found[0]?.uri }
      },
    })
    const answers: Answers = {
      elicit: { action: 'cancel' },
      idea: { role: 'assistant', model: 'm', content: { type: 'text', text: 'an idea' } },
      roots: { roots: [{ uri: 'file:///project' }] },
    }
    const { structured, asks } = await testTool(curious, {}, { answers })
    expect(structured).to.deep.equal({
      action: 'cancel',
      content: { type: 'text', text: 'an idea' },
      uri: 'file:///project',
    })
    expect(asks.map(({ key }) => key)).to.deep.equal(['roots-1', 'idea', 'elicit-1'])
  })

  it('fail for a client without the capability', async () => {
    const error = await rejectionOf(testTool(remove, {}, { answers: [accept], capabilities: {} }))
    expect(HostError.is(error) && error.kind).to.equal('missingCapability')
  })
})

describe('testResource and testPrompt', () => {
  const notes = defineResource({
    name: 'note',
    uriTemplate: 'notes://{id}',
    mimeType: 'text/plain',
    handler({ id }, { user }) {
      if (id === 'bug') throw new TypeError('a bug')
      return id === '9' ? undefined : `note ${id} of ${user?.subject}`
    },
  })

  it('read a resource of a template', async () => {
    const { text, result } = await testResource(notes, 'notes://1', { user: { subject: 'ann' } })
    expect(text).to.equal('note 1 of ann')
    expect(result.contents).to.deep.equal([{ uri: 'notes://1', mimeType: 'text/plain', text }])
  })

  it('reject with the client error or the original error', async () => {
    const missing = await rejectionOf(testResource(notes, 'notes://9'))
    expect(HostError.is(missing) && missing.kind).to.equal('resourceNotFound')
    expect(await rejectionOf(testResource(notes, 'notes://bug'))).to.be.instanceOf(TypeError)
  })

  it('use the URI of a single resource by default', async () => {
    const page = defineResource({ name: 'page', uri: 'test://page', handler: () => 'a page' })
    expect((await testResource(page)).text).to.equal('a page')
  })

  it('get a prompt and validate its arguments', async () => {
    const ask = definePrompt({
      name: 'ask',
      arguments: { topic: { required: true } },
      handler: ({ topic }) => `Tell me of ${topic}.`,
    })
    expect((await testPrompt(ask, { topic: 'tea' })).text).to.equal('Tell me of tea.')
    expect(String(await rejectionOf(testPrompt(ask)))).to.include('argument "topic" is required')
  })
})
