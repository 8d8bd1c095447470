// Tests that a tool answers the same way however it is called: by name, by call_tool, as a task, in a session, per request and
// over HTTP+SSE; and that callers who are not allowed to call a tool receive nothing of it. Configs and callers are generated.
import { join } from 'node:path'
import { expect } from 'chai'
import fc from 'fast-check'
import { authorizeRoute } from '../../core/auth.ts'
import { type Config, definePlugin, type RouteSettings } from '../../core/index.ts'
import * as tools from '../fixtures/way-tools.ts'
import { taskClient } from '../plugins/tasks/support/task-client.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { initialize, nextMessage, openSession } from '../support/session-client.ts'
import { openSse, openSseSession } from '../support/sse-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'
import { caseCount } from '../support/thorough.ts'

const CONFIGS = caseCount(60, 6)
const SEED = 20_261_126
const THREAD = join(import.meta.dirname, '../fixtures/way-thread.ts')

const one = <const Values extends readonly unknown[]>(...values: Values): fc.Arbitrary<Values[number]> =>
  fc.constantFrom(...values)
const draft = fc.record({
  parameter: one('none', 'listed', 'open'),
  authorize: one(undefined, true, 'staff'),
  stateless: fc.boolean(),
  search: fc.boolean(),
  tasks: fc.boolean(),
  limited: fc.boolean(),
  isolated: fc.boolean(),
  /** When configureSession adds the toolset `gold`. */
  hook: one('never', 'by header', 'by header, for users'),
  /** Where tools are added at run time. */
  addedTo: one(undefined, 'basic', 'gold'),
})
const caller = fc.record({ user: fc.boolean(), staff: fc.boolean(), gold: fc.boolean() })

type Draft = typeof draft extends fc.Arbitrary<infer Value> ? Value : never
type Caller = typeof caller extends fc.Arbitrary<infer Value> ? Value : never

/** Identifies callers by the headers `X-User` and `X-Staff`. */
const identify = definePlugin<Record<never, never>>({
  options: { type: 'object', additionalProperties: false, properties: {} },
  provides: ['user', 'authorize'],
  setup(host) {
    host.identify(async (ctx, next) => {
      const { 'x-user': subject, 'x-staff': staff } = ctx.req.headers
      const roles = staff === undefined ? [] : ['staff']
      if (typeof subject === 'string') ctx.state.user = { subject, scopes: [], roles, claims: {} }
      await next()
    })
    host.serving(services => host.admit(authorizeRoute(host, services)))
  },
})

function configOf({ parameter, authorize, stateless, search, tasks, limited, isolated, hook }: Draft) {
  const route: RouteSettings = {
    toolsets: { none: ['basic'], listed: { param: 'set', of: ['basic'] }, open: ':set' }[parameter],
    stateless,
    ...(authorize !== undefined && { authorize }),
    plugins: {
      ...(stateless && { 'transport-sse': false as const }),
      ...(search && { 'tool-search': { pinned: [] } }),
    },
  }
  const configureSession: NonNullable<Config['configureSession']> = ({ headers, user }, session) => {
    if (headers['x-gold'] !== undefined && (hook === 'by header' || user)) session.addToolset('gold')
  }
  return {
    toolsets: {
      basic: [...tools.basic.map(tool => (tasks ? tool : withoutTask(tool))), ...(isolated ? [THREAD] : [])],
      gold: { from: tools.gold.map(tool => (tasks ? tool : withoutTask(tool))), internal: true },
    },
    routes: { [parameter === 'none' ? '/tools' : '/tools/:set']: route, '/other': { toolsets: 'basic' } },
    plugins: {
      'transport-streamable': {},
      'transport-sse': {},
      identify: identify(),
      'tool-policy': { policies: { staff: { role: 'staff' } }, rules: { ruled: 'staff' } },
      ...(tasks && { tasks: { pollInterval: '20ms' } }),
      ...(limited && { 'rate-limit': { user: '100000/1m', concurrent: 64, tools: { '*': '100000/1m' } } }),
    },
    ...(hook !== 'never' && { configureSession }),
  }
}

const withoutTask = <Tool extends { task?: unknown }>({ task: _, ...tool }: Tool) => tool as Tool

const GOLD = ['gold_tool', 'gold_background']
const STAFF = ['staff_only', 'staff_background', 'ruled', 'late_staff']
const LATE = ['late', 'late_staff']
const NAMES = [...tools.basic.map(({ name }) => name), ...GOLD, ...LATE, 'threaded']
const WITH_TASK = ['background', 'staff_background', 'gold_background']

type Verdict = 'answered' | 'refused' | 'missing'

/** What a caller receives for a tool: the oracle, from the config alone. */
function expected({ authorize, isolated, hook, addedTo }: Draft, { user, staff, gold }: Caller, name: string): Verdict {
  const isStaff = user && staff
  if (authorize !== undefined && !(authorize === true ? user : isStaff)) return 'refused'
  const hasGold = gold && (hook === 'by header' || (hook === 'by header, for users' && user))
  const isGold = GOLD.includes(name) || (LATE.includes(name) && addedTo === 'gold')
  if (isGold ? !hasGold : name === 'threaded' && !isolated) return 'missing'
  return STAFF.includes(name) && !isStaff ? 'refused' : 'answered'
}

interface Outcome {
  readonly verdict: Verdict
  readonly content?: unknown
  /** All that was received. */
  readonly raw: string
}

function outcomeOf(status: number, message: RpcMessage | undefined, raw = JSON.stringify(message ?? null)): Outcome {
  if (status === 401 || status === 403) return { verdict: 'refused', raw }
  // In HTTP+SSE an answer has no status.
  if (message?.error && /^(Forbidden|Authentication required)/.test(message.error.message))
    return { verdict: 'refused', raw }
  if (message?.error) {
    expect(message.error.code, raw).to.equal(-32602)
    return { verdict: 'missing', raw }
  }
  const { content, structuredContent, isError } = message?.result ?? {}
  if (isError) {
    // call_tool reports an unknown tool to the model.
    expect(content[0].text).to.match(/^There is no tool "/)
    return { verdict: 'missing', raw }
  }
  return { verdict: 'answered', content: { content, structuredContent }, raw }
}

type Way = (name: string, args: object) => Promise<Outcome>

/** Every way to call a tool at a URL. */
async function waysTo(url: string, { stateless, search, tasks }: Draft, who: Caller) {
  const headers = {
    ...(who.user && { 'X-User': 'ann' }),
    ...(who.staff && { 'X-Staff': '1' }),
    ...(who.gold && { 'X-Gold': '1' }),
  }
  const ways: Record<string, Way> = {
    async 'by name'(name, args) {
      const { status, message, text } = await modern(url, 'tools/call', { name, arguments: args }, { headers })
      return outcomeOf(status, message, text)
    },
  }
  if (search) {
    ways['by call_tool'] = async (name, args) => {
      const params = { name: 'call_tool', arguments: { name, arguments: args } }
      const { status, message, text } = await modern(url, 'tools/call', params, { headers })
      return outcomeOf(status, message, text)
    }
  }
  if (tasks) {
    const client = taskClient(url, undefined, {}, headers)
    ways['as a task'] = async (name, args) => {
      const { status, message, text } = await client.call(name, args)
      if (message?.result?.resultType !== 'task') return outcomeOf(status, message, text)
      expect(WITH_TASK).to.include(name)
      const task = await client.until(message.result.taskId)
      return outcomeOf(200, { result: task.result, ...(task.error && { error: task.error }) })
    }
  }
  if (stateless) return { ways, headers, close: async () => undefined }
  const opened = await initialize(url, { headers })
  const session = opened.status === 200 ? await openSession(url, { headers }) : undefined
  ways['in a session'] = async (name, args) => {
    if (!session) return outcomeOf(opened.status, opened.message, opened.text)
    const { status, message, text } = await session.request('tools/call', { name, arguments: args })
    return outcomeOf(status, message, text)
  }
  const stream = await openSse(url, { headers })
  stream.drop()
  const sse = stream.status === 200 ? await openSseSession(url, { headers }) : undefined
  let id = 0
  ways['over HTTP+SSE'] = async (name, args) => {
    if (!sse) return outcomeOf(stream.status, undefined)
    const wanted = `call ${++id}`
    const posted = await sse.post({ id: wanted, method: 'tools/call', params: { name, arguments: args } })
    if (posted.status >= 400) return outcomeOf(posted.status, posted.message, posted.text)
    for (let message = await nextMessage(sse.stream); message; message = await nextMessage(sse.stream)) {
      if (message.id === wanted) return outcomeOf(200, message)
    }
    throw new Error('the stream ended before the answer')
  }
  async function close() {
    await session?.end()
    sse?.stream.drop()
  }
  return { ways, headers, close }
}

/** All that lists and searches tell a caller. */
async function readLists(url: string, { search }: Draft, headers: Record<string, string>): Promise<string> {
  const asked = [modern(url, 'tools/list', {}, { headers }), modern(url, 'server/discover', {}, { headers })]
  if (search) {
    const params = { name: 'find_tools', arguments: { query: 'words of a tool', limit: 20 } }
    asked.push(modern(url, 'tools/call', params, { headers }))
  }
  return (await Promise.all(asked)).map(({ text }) => text).join('\n')
}

after(stopHosts)

describe('generated configs and callers: one tool, every way to call it', () => {
  it('answers the same way, and tells callers who are not allowed to call a tool nothing of it', async function () {
    this.timeout(300_000)
    const counts: Record<Verdict, number> = { answered: 0, refused: 0, missing: 0 }
    const property = fc.asyncProperty(
      draft,
      fc.array(caller, { minLength: 3, maxLength: 3 }),
      async (given, callers) => {
        const { url: base, host } = await startHost(configOf(given))
        const { addedTo } = given
        for (const tool of tools.late) host.runtime.tools.add(tool, addedTo === undefined ? {} : { toolset: addedTo })
        const url = `${base}/tools${given.parameter === 'none' ? '' : '/basic'}`
        for (const who of callers) {
          const { ways, headers, close } = await waysTo(url, given, who)
          const lists = await readLists(url, given, headers)
          for (const [n, name] of NAMES.entries()) {
            const wanted = expected(given, who, name)
            const secret = tools.words(name)
            counts[wanted]++
            if (wanted !== 'answered') expect(lists, name).not.to.include(secret)
            let first: unknown
            for (const [way, call] of Object.entries(ways)) {
              const said = `${name} ${way}: ${JSON.stringify({ given, who })}`
              const { verdict, content, raw } = await call(name, { n })
              expect(verdict, `${said} ${raw}`).to.equal(wanted)
              expect(raw, said).not.to.include('hunter2')
              if (wanted !== 'answered') expect(raw, said).not.to.include(secret)
              else expect(JSON.stringify(content), said).to.include(`${secret}: ${n}`)
              first ??= content
              // Older revisions have no structured content.
              if (way !== 'over HTTP+SSE') expect(content, said).to.deep.equal(first)
            }
          }
          await close()
        }
        expect((await modern(`${base}/tools/gold`, 'tools/list')).status).to.equal(404)
        await stopHosts()
      },
    )
    await fc.assert(property, { numRuns: CONFIGS, seed: SEED, endOnFailure: true })
    for (const count of Object.values(counts)) expect(count).to.be.greaterThan(CONFIGS * 3)
  })
})
