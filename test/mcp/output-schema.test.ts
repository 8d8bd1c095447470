// Tests that structured content always matches the output schema that clients are shown.
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type } from 'arktype'
import { expect } from 'chai'
import { z } from 'zod'
import { defineTool, type JsonSchema, type StandardSchema } from '../../core/index.ts'
import { testTool } from '../../core/testing.ts'
import { legacy, modern, type RpcMessage } from '../support/rpc.ts'
import { type LogLine, startHost, stopHosts } from '../support/start-host.ts'

class Account {
  name = 'a'
  get inherited() {
    return 'b'
  }
}

interface Case {
  readonly output: JsonSchema | StandardSchema
  readonly returned: unknown
  /** Absent: the call fails. */
  readonly sent?: unknown
}

const person = z.object({ name: z.string() })
const leak = { name: 'a', password: 'hunter2' }
const whole = (structuredContent: unknown) => ({
  content: [
    { type: 'text', text: JSON.stringify(structuredContent) },
    { type: 'text', text: 'words' },
  ],
  structuredContent,
})

const parsed: Readonly<Record<string, Case>> = {
  'unknown properties': { output: person, returned: leak, sent: { name: 'a' } },
  'unknown properties of objects in a list': {
    output: z.object({ people: z.array(person) }),
    returned: { people: [leak, { name: 'b' }] },
    sent: { people: [{ name: 'a' }, { name: 'b' }] },
  },
  'unknown properties of a union member': {
    output: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('one'), name: z.string() }),
      z.object({ kind: z.literal('two') }),
    ]),
    returned: { kind: 'two', name: 'a' },
    sent: { kind: 'two' },
  },
  'unknown properties, with an asynchronous check': {
    output: person.refine(async () => true),
    returned: leak,
    sent: { name: 'a' },
  },
  default: { output: z.object({ count: z.number().default(1) }), returned: {}, sent: { count: 1 } },
  coerce: { output: z.object({ count: z.coerce.number() }), returned: { count: '5' }, sent: { count: 5 } },
  pipe: {
    output: z.object({
      size: z
        .string()
        .transform(text => text.length)
        .pipe(z.number()),
    }),
    returned: { size: 'four' },
    sent: { size: 4 },
  },
  catch: { output: z.object({ count: z.number().catch(0) }), returned: { count: 'many' }, sent: { count: 0 } },
  trim: { output: z.object({ name: z.string().trim() }), returned: { name: ' a ' }, sent: { name: 'a' } },
  'a number of a text': { output: z.coerce.number(), returned: '5', sent: 5 },
  'a date as its text': {
    output: z.object({ at: z.string() }),
    returned: { at: new Date(0) },
    sent: { at: '1970-01-01T00:00:00.000Z' },
  },
  'the structured content of a whole result': { output: person, returned: whole(leak), sent: { name: 'a' } },
  'properties that arktype deletes': {
    output: type({ '+': 'delete', name: 'string' }),
    returned: leak,
    sent: { name: 'a' },
  },
  'an arktype morph': {
    output: type({ count: type('string.numeric.parse').pipe(type('number')) }),
    returned: { count: '5' },
    sent: { count: 5 },
  },
}

const refused: Readonly<Record<string, Case>> = {
  'a text that is too short once it is trimmed': {
    output: z.object({ name: z.string().min(2).trim() }),
    returned: { name: ' a ' },
  },
  'an infinite number of arktype, which is null in JSON': {
    output: type({ count: 'number' }),
    returned: { count: Number.POSITIVE_INFINITY },
  },
  'a required property that is a function': {
    output: { type: 'object', required: ['run'] },
    returned: { run: () => 1 },
  },
  'a required property that is inherited': {
    output: { type: 'object', required: ['inherited'] },
    returned: new Account(),
  },
  'a property that toJSON adds': {
    output: { type: 'object', properties: { name: {} }, additionalProperties: false },
    returned: { name: 'a', toJSON: () => leak },
  },
  'no value': { output: {}, returned: undefined },
}

const cases = { ...parsed, ...refused }
const nameOf = (what: string) => what.replaceAll(/[^a-z]+/gi, '_')
const tools = Object.entries(cases).map(([what, { output, returned }]) =>
  defineTool({ name: nameOf(what), output: output as JsonSchema, handler: () => returned as never }),
)

let url: string
let log: LogLine[]
const schemas = new Map<string, JsonSchema>()
before(async () => {
  ;({ url, log } = await startHost({
    stateless: true,
    toolsets: { tools },
    routes: { '/': { toolsets: 'tools' } },
  }))
  const { result } = (await modern(url, 'tools/list')).message
  for (const { name, outputSchema } of result.tools) schemas.set(name, outputSchema)
})
after(stopHosts)

const ajv = new Ajv2020({ strict: false, logger: false })
const fits = (name: string, value: unknown) => ajv.validate(schemas.get(name) ?? false, value)

function expectSent(name: string, result: RpcMessage, sent: unknown) {
  expect(result).not.to.have.property('isError')
  expect(result.structuredContent).to.deep.equal(sent)
  expect(fits(name, sent)).to.equal(true)
  const [words] = result.content
  expect(words.text).to.equal(typeof sent === 'string' ? sent : JSON.stringify(sent))
}

describe('Structured content', () => {
  for (const [what, { sent }] of Object.entries(parsed)) {
    it(`is the value that the output schema parsed: ${what}`, async () => {
      const params = { name: nameOf(what) }
      const { message } = await modern(url, 'tools/call', params)
      expectSent(params.name, message.result, sent)
      expect(JSON.stringify(message)).not.to.include('hunter2')
      if (typeof sent !== 'object') return
      const older = await legacy(url, 'tools/call', params)
      expectSent(params.name, older.message.result, sent)
    })
  }

  for (const what of Object.keys(refused)) {
    it(`never violates the JSON Schema that clients are shown: ${what}`, async () => {
      log.length = 0
      const name = nameOf(what)
      const { content, isError } = (await modern(url, 'tools/call', { name })).message.result
      expect([isError, content]).to.deep.equal([true, [{ type: 'text', text: `${name} failed` }]])
      const failures = log.filter(({ level }) => level === 'error').map(({ err }) => String(err))
      expect(failures).to.have.length(1)
      expect(failures[0]).to.include(`the result of ${name} does not match its output schema`)
    })
  }

  it('leaves the other texts of a whole result as they are', async () => {
    const { message } = await modern(url, 'tools/call', { name: nameOf('the structured content of a whole result') })
    expect(message.result.content[1]).to.deep.equal({ type: 'text', text: 'words' })
  })

  it('is omitted from an error result that the output schema refuses, and parsed otherwise', async () => {
    const content = [{ type: 'text' as const, text: 'no' }]
    const failing = (structuredContent: { name: string }) =>
      testTool(
        defineTool({ name: 'fails', output: person, handler: () => ({ content, isError: true, structuredContent }) }),
      )
    expect((await failing({ password: 'hunter2' } as never)).result).to.deep.equal({ content, isError: true })
    expect((await failing(leak)).result).to.deep.include({ isError: true, structuredContent: { name: 'a' } })
  })

  it('is the same in testTool', async () => {
    const tool = defineTool({ name: 'leaks', output: person, handler: () => leak })
    const { structured, text } = await testTool(tool)
    expect([structured, text]).to.deep.equal([{ name: 'a' }, '{"name":"a"}'])
  })
})
