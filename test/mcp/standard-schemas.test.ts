// Tests tools with schemas of zod, arktype and valibot.
import { type } from 'arktype'
import { expect } from 'chai'
import * as v from 'valibot'
import { z } from 'zod'
import { defineTool, type StandardSchema } from '../../core/index.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { legacy, modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

const zodOrder = z.object({
  item: z.string().min(2),
  count: z.int().positive().default(1),
  tags: z.array(z.string()).optional(),
})
const zodTool = defineTool({
  name: 'zod',
  input: zodOrder,
  output: z.object({ line: z.string(), count: z.number() }),
  // The handler's argument has its defaults: this compiles because `count` is a number, not a number or undefined.
  handler: ({ item, count, tags = [] }) => ({
    line: `${item.toUpperCase()} ${tags.join()}`,
    count: count.toFixed(0) === '9' ? ('nine' as never) : count,
  }),
})
const arktypeTool = defineTool({
  name: 'arktype',
  input: type({ item: 'string >= 2', 'count?': 'number.integer > 0' }),
  output: type({ line: 'string', count: 'number' }),
  handler: ({ item, count = 1 }) => ({ line: item.toUpperCase(), count: count === 9 ? ('nine' as never) : count }),
})
const later = defineTool({
  name: 'later',
  input: z.object({ item: z.string().refine(async item => item !== 'taken', 'is taken') }),
  handler: ({ item }) => item,
})
const trimmed = defineTool({
  name: 'trimmed',
  input: z.object({ item: z.string().trim() }),
  handler: ({ item }) => `<${item}>`,
})
const place = defineTool({
  name: 'place',
  input: z.object({ by: z.union([z.object({ city: z.string() }), z.object({ zip: z.int() })]) }),
  output: z.object({ line: z.string() }),
  handler: (() => undefined) as never,
})

let url: string
before(async () => {
  const all = [zodTool, arktypeTool, later, trimmed, place]
  ;({ url } = await startHost({ stateless: true, toolsets: { all }, routes: { '/': { toolsets: 'all' } } }))
})
after(stopHosts)

const call = async (name: string, args: object): Promise<RpcMessage> =>
  (await modern(url, 'tools/call', { name, arguments: args })).message.result

describe('Tool with Standard Schemas', () => {
  it('is listed with its JSON Schema in both protocol eras', async () => {
    for (const { message } of [await modern(url, 'tools/list'), await legacy(url, 'tools/list')]) {
      for (const name of ['arktype', 'zod']) {
        const tool = message.result.tools.find((tool: RpcMessage) => tool.name === name)
        expect(tool.inputSchema).to.deep.include({ type: 'object', required: ['item'] })
        expect(tool.inputSchema.properties.item).to.deep.equal({ type: 'string', minLength: 2 })
        expect(tool.outputSchema.properties).to.have.all.keys('line', 'count')
        expect(tool.outputSchema.required).to.have.members(['line', 'count'])
      }
    }
  })

  for (const name of ['arktype', 'zod']) {
    it(`of ${name} receives valid arguments and returns structured content`, async () => {
      const result = await call(name, { item: 'abc', count: 2 })
      expect(result.structuredContent).to.deep.equal({ line: name === 'zod' ? 'ABC ' : 'ABC', count: 2 })
    })

    it(`of ${name} reports the invalid argument and the reason to the model`, async () => {
      const { isError, content } = await call(name, { item: 'a', count: 0 })
      expect(isError).to.equal(true)
      expect(content[0].text).to.match(new RegExp(`^Invalid arguments for ${name}:\n`))
      expect(content[0].text).to.match(/item/).and.to.match(/count/)
    })

    it(`of ${name} fails if its result violates the output schema`, async () => {
      const result = await call(name, { item: 'abc', count: 9 })
      expect(result).to.deep.include({ isError: true, content: [{ type: 'text', text: `${name} failed` }] })
      expect(result).not.to.have.property('structuredContent')
    })
  }

  it('names the reasons of each alternative of a union', async () => {
    const { content } = await call('place', { by: { town: 'Bern', zip: 'x' } })
    expect(content[0].text).to.include('by: fits none of the allowed forms (by.city: ').and.include('; or by.zip: ')
  })

  it('receives schema defaults and transformations', async () => {
    expect((await call('zod', { item: 'abc' })).structuredContent).to.deep.equal({ line: 'ABC ', count: 1 })
    expect((await call('trimmed', { item: '  a ' })).content[0].text).to.equal('<a>')
  })

  it('supports asynchronous schemas', async () => {
    expect((await call('later', { item: 'free' })).content[0].text).to.equal('free')
    const taken = await call('later', { item: 'taken' })
    expect([taken.isError, taken.content[0].text]).to.deep.equal([true, 'Invalid arguments for later:\nitem: is taken'])
  })
})

describe('Standard Schema without JSON Schema stops startup', () => {
  const start = (input: StandardSchema) => ({
    toolsets: { all: [defineTool({ name: 'order', input, handler: () => '' })] },
    routes: { '/': { toolsets: 'all' } },
  })

  it('for valibot, with the function and package that provide it', async () => {
    const input = v.object({ item: v.string() })
    await expectStopped(
      start(input),
      /toolset "all": tool "order": its input, a schema of valibot, cannot be converted/,
    )
    await expectStopped(start(input), /toStandardJsonSchema\(v\.object.*@valibot\/to-json-schema/)
  })

  it('for zod types without JSON representation, with library and reason', async () => {
    const words = /tool "order": zod cannot convert its input to JSON Schema: .*[Dd]ate/
    await expectStopped(start(z.object({ at: z.date() })), words)
  })

  it('for any library if the root is not an object', async () => {
    await expectStopped(start(z.string()), /tool "order".*`type`.*"object"/)
    await expectStopped(start(type('string')), /tool "order".*`type`.*"object"/)
  })
})
