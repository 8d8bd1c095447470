// call_tool compared with a direct call of the same tool: responses, records, metrics and limits.
import { expect } from 'chai'
import { defineTool, ToolError } from '../../../core/index.ts'
import type { CallRecord } from '../../../core/plugin.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { plugin } from '../../fixtures/plugins.ts'
import { eventually } from '../../support/eventually.ts'
import { createGate } from '../../support/gate.ts'
import { modern } from '../../support/rpc.ts'
import { postOpen, readWhole } from '../../support/session-client.ts'
import { startHost, stopHosts, type TestConfig } from '../../support/start-host.ts'
import { caseCount, selectCases } from '../../support/thorough.ts'
import { ASKERS, as, bearerJson } from '../tool-policy/bearer-json.ts'

afterEach(stopHosts)

const input = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const
const output = { type: 'object', properties: { twice: { type: 'number' } }, required: ['twice'] } as const

const TOOLS = [
  defineTool({ name: 'plain', handler: () => 'plain' }),
  defineTool({ name: 'strict', input, handler: ({ n }) => `${n}` }),
  defineTool({ name: 'double', input, output, handler: ({ n }) => ({ twice: 2 * n }) }),
  defineTool({ name: 'broken', output, handler: () => ({ half: 1 }) as never }),
  defineTool({
    name: 'whole',
    handler: () => ({ content: [{ type: 'text' as const, text: 'whole' }], _meta: { 'example.com/own': 1 } }),
  }),
  defineTool({
    name: 'fail',
    handler() {
      throw new ToolError('no luck')
    },
  }),
  defineTool({
    name: 'throw',
    handler() {
      throw new Error('nobody hears of it')
    },
  }),
  defineTool({ name: 'admin', access: 'admin', handler: () => 'admin' }),
  defineTool({ name: 'shown', access: 'admin', visibility: 'listed', handler: () => 'shown' }),
  defineTool({
    name: 'slow',
    timeout: 20,
    handler: (_args, { signal }) => new Promise(resolve => signal.addEventListener('abort', resolve)),
  }),
]

const OPEN = TOOLS.filter(({ access }) => access === undefined)

const CALLS: ReadonlyArray<readonly [name: string, args?: unknown]> = [
  ...TOOLS.map(({ name }) => [name] as const),
  ['strict', { n: 1 }],
  ['strict', { n: 'x' }],
  ['double', { n: 4 }],
  ['plain', { more: true }],
]

const CALLERS = [undefined, { subject: 'ann', scopes: ['admin'] }, { subject: 'bob', scopes: ['other'] }]
const POLICY: ToolPolicyOptions = { policies: { admin: { scope: 'admin' } } }
const ROUTES = {
  '/': { toolsets: 'all', search: {} },
  '/stateless': { toolsets: 'all', search: {}, stateless: true },
} as const

type Plugins = NonNullable<TestConfig['plugins']>
const serve = (plugins: Plugins, more: Partial<TestConfig> = {}) =>
  startHost({ toolsets: { all: TOOLS }, routes: ROUTES, ...more, plugins: { 'transport-streamable': {}, ...plugins } })
const wrapped = (name: string, args?: unknown) => ({
  name: 'call_tool',
  arguments: { name, ...(args !== undefined && { arguments: args }) },
})
const plain = (name: string, args?: unknown) => ({ name, ...(args !== undefined && { arguments: args }) })
const textOf = (message: { result: { content: [{ text: string }] } }) => message.result.content[0].text

/** What a record says that does not tell one request from the next. */
const ofRecord = ({ method, item, outcome, error, refusedBy, route, revision, user, bytesOut, asked }: CallRecord) => ({
  ...{ method, item, outcome, kind: error?.kind, refusedBy, route, revision, user, bytesOut, asked },
})

function createWatch() {
  const records: CallRecord[] = []
  const watch = plugin(host => host.onFinish(record => void (record.method === 'tools/call' && records.push(record))))
  const next = async (count = 1) => {
    await eventually('a record', () => records.length >= count)
    return records.splice(0)
  }
  return { watch, next }
}

describe('call_tool', () => {
  it('matches the direct tool call in responses and records for every caller', async () => {
    const { watch, next } = createWatch()
    const { url } = await serve({ bearer: bearerJson(), 'tool-policy': POLICY, watch })
    let compared = 0
    for (const asker of ASKERS) {
      for (const caller of CALLERS) {
        const ask = await asker.of(url, caller)
        for (const [name, args] of selectCases(CALLS, 6)) {
          const told = async (params: object) => {
            const { status, challenge, message } = await ask('tools/call', params)
            const { id: _, ...rest } = message
            return { status, challenge, rest, records: (await next()).map(ofRecord) }
          }
          const direct = await told(plain(name, args))
          const through = await told(wrapped(name, args))
          // The id of a message is as long as the number of messages was then.
          const [one, other] = [direct, through].map(({ records }) =>
            records.map(({ bytesOut, ...rest }) => ({ ...rest, has: bytesOut !== undefined })),
          )
          expect(one).to.have.lengthOf(1)
          const where = `${asker.name}, ${caller?.subject}, ${name} ${JSON.stringify(args)}`
          expect(other, where).to.deep.equal(one)
          expect({ ...through, records: [] }, where).to.deep.equal({ ...direct, records: [] })
          compared += 1
        }
      }
    }
    expect(compared).to.equal(ASKERS.length * CALLERS.length * caseCount(CALLS.length, 6))
  })

  it('answers 401 or 403 with the auth challenge of the called tool', async () => {
    const { url } = await serve({ bearer: bearerJson(), 'tool-policy': POLICY })
    const ask = async (caller: (typeof CALLERS)[number]) => {
      const { status, headers, message } = await modern(url, 'tools/call', wrapped('admin'), { headers: as(caller) })
      return [status, headers.get('www-authenticate') ?? textOf(message)]
    }
    const [nobody, ann, bob] = await Promise.all(CALLERS.map(ask))
    expect(nobody).to.deep.equal([401, 'Bearer scope="admin"'])
    expect(ann).to.deep.equal([200, 'admin'])
    expect(bob?.[0]).to.equal(403)
    expect(bob?.[1]).to.contain('error="insufficient_scope"').and.to.contain('scope="admin"')
  })

  it('is refused if its own access is denied, and runs no tool', async () => {
    const policy = { policies: { admin: { scope: 'admin' } }, rules: { call_tool: 'admin' } }
    const { url } = await serve({ bearer: bearerJson(), 'tool-policy': policy })
    const headers = as({ subject: 'bob', scopes: [] })
    const names = (await modern(url, 'tools/list', {}, { headers })).message.result.tools
    expect(names.map(({ name }: { name: string }) => name)).to.deep.equal(['find_tools'])
    expect((await modern(url, 'tools/call', wrapped('plain'), { headers })).status).to.equal(403)
    expect((await modern(url, 'tools/call', plain('plain'), { headers })).status).to.equal(200)
    const admin = as({ subject: 'ann', scopes: ['admin'] })
    expect((await modern(url, 'tools/call', wrapped('plain'), { headers: admin })).status).to.equal(200)
  })

  it('explains invalid calls in messages for a model', async () => {
    const { watch, next } = createWatch()
    const elsewhere = defineTool({ name: 'elsewhere', handler: () => 'elsewhere' })
    const { url } = await serve(
      { bearer: bearerJson(), 'tool-policy': POLICY, watch },
      {
        toolsets: { all: TOOLS, other: [elsewhere] },
        routes: { ...ROUTES, '/other': { toolsets: 'other', search: {} } },
      },
    )
    const cases: ReadonlyArray<readonly [args: unknown, text: RegExp]> = [
      [{ name: 'plan' }, /"plan".*"plain".*find_tools/],
      [{ name: 'admn' }, /"admn"[^"]*find_tools/],
      [{ name: 'call_tool' }, /call_tool.*call_tool/],
      [{ name: 'call_tool', arguments: { name: 'plain' } }, /call_tool.*call_tool/],
      [{ name: 'find_tools', arguments: { query: 'a' } }, /call_tool.*find_tools/],
      [{}, /arguments.*call_tool/],
      [undefined, /arguments.*call_tool/],
      [{ name: 7 }, /arguments.*call_tool/],
      [{ name: 'plain', arguments: 'x' }, /arguments.*call_tool/],
      [{ name: 'plain', arguments: null }, /arguments.*call_tool/],
      [{ name: 'plain', arguments: [] }, /arguments.*call_tool/],
      [{ name: 'plain', args: {} }, /arguments.*call_tool/],
      [{ name: 'x'.repeat(300) }, /arguments.*call_tool/],
      [{ name: '__proto__' }, /"__proto__"/],
      [{ name: 'constructor' }, /"constructor"/],
      [{ name: 'PLAIN' }, /"PLAIN".*"plain"/],
      [{ name: 'plain ' }, /"plain /],
      [{ name: ['plain'] }, /arguments.*call_tool/],
      [{ name: null }, /arguments.*call_tool/],
      // A tool of another route alone.
      [{ name: 'elsewhere' }, /"elsewhere"[^"]*find_tools/],
    ]
    for (const [args, text] of cases) {
      const { status, message } = await modern(url, 'tools/call', plain('call_tool', args))
      expect([status, message.result?.isError], JSON.stringify(args)).to.deep.equal([200, true])
      expect(textOf(message)).to.match(text)
      const [record, ...more] = await next()
      expect(more).to.deep.equal([])
      expect(record).to.deep.include({ item: { kind: 'tools', name: 'call_tool' }, outcome: 'tool_error' })
    }
    for (const args of [[], 'x', ['plain']]) {
      const { message } = await modern(url, 'tools/call', plain('call_tool', args))
      expect(message.error?.code, JSON.stringify(args)).to.equal(-32602)
      await next()
    }
    expect(textOf((await modern(`${url}/other`, 'tools/call', wrapped('elsewhere'))).message)).to.equal('elsewhere')
  })

  it('counts towards the rate and concurrency limits of the called tool', async () => {
    const gate = createGate()
    let running = 0
    let most = 0
    const one = defineTool({
      name: 'one',
      concurrency: 1,
      async handler() {
        running += 1
        most = Math.max(most, running)
        await gate.opened
        running -= 1
        return 'done'
      },
    })
    const { url } = await serve({ 'rate-limit': { tools: { plain: '3/1h' } } }, { toolsets: { all: [...OPEN, one] } })
    const statusOf = async (params: Record<string, unknown>) => (await modern(url, 'tools/call', params)).status
    const limited = [plain('plain'), wrapped('plain'), wrapped('plain'), wrapped('plain'), plain('plain')]
    const statuses: number[] = []
    for (const params of limited) statuses.push(await statusOf(params))
    expect(statuses).to.deep.equal([200, 200, 200, 429, 429])
    const both = [plain('one'), wrapped('one'), wrapped('one'), plain('one')].map(statusOf)
    await eventually('the first runs', () => running === 1)
    gate.open()
    expect(await Promise.all(both)).to.deep.equal([200, 200, 200, 200])
    expect(most).to.equal(1)
  })

  it('is not counted by a limit named call_tool', async () => {
    const { url } = await serve({ 'rate-limit': { tools: { call_tool: '2/1h' } } }, { toolsets: { all: OPEN } })
    const statusOf = async (params: Record<string, unknown>) => (await modern(url, 'tools/call', params)).status
    const statuses: number[] = []
    for (const name of ['plain', 'plain', 'plain', 'nobody', 'nobody', 'nobody', 'plain']) {
      statuses.push(await statusOf(wrapped(name)))
    }
    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429, 200])
  })

  it('works in a batch, with each call handled separately', async () => {
    const { watch, next } = createWatch()
    const { url } = await serve({ watch }, { toolsets: { all: OPEN } })
    const batch = ['plain', 'fail', 'nobody'].map((name, id) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: wrapped(name),
    }))
    const { message } = await readWhole(postOpen(`${url}/stateless`, batch, { 'MCP-Protocol-Version': '2025-03-26' }))
    expect(message.map(({ result }: { result: { isError?: boolean } }) => result.isError ?? false)).to.deep.equal([
      false,
      true,
      true,
    ])
    const records = await next(3)
    expect(records.map(({ item }) => item?.name).sort()).to.deep.equal(['call_tool', 'fail', 'plain'])
  })
})
