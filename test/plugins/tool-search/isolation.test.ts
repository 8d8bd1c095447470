// find_tools isolation: hidden tools never influence the results of a caller.
import { expect } from 'chai'
import { defineTool, type ToolDefinition, type User } from '../../../core/index.ts'
import { modernRequest, post } from '../../support/rpc.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { caseCount, itThorough, selectCases } from '../../support/thorough.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'

afterEach(stopHosts)

const random = createSeededRandom(23)
const oneOf = <T>(list: readonly T[]): T => list[random.below(list.length)] as T

const SCOPES = ['sales', 'hr', 'ops', 'board']
const POLICIES = Object.fromEntries(SCOPES.map(scope => [scope, { scope }]))
/** Words that begin as others do, are spelt nearly as others are, and some that few tools have. */
const WORDS = (
  'order orders orderly ordeal border invoice invoices invoked voice refund refunds refine customer custom costume ledger ' +
  'ledge pledge payment payroll pay salary severance acquisition acquire merger merge layoff layout stock stocks stick'
).split(' ')

function word(): string {
  const one = oneOf(WORDS)
  return random.below(6) === 0 ? `${one}${random.below(40).toString(36)}` : one
}
const text = (length: number) => Array.from({ length }, word).join(' ')

interface Known {
  readonly tool: ToolDefinition
  readonly access: string | undefined
  readonly isForPages: boolean
}

function makeTool(index: number, first: number): Known {
  // The first is everybody's. Of a rare word's tools often all are hidden.
  const access = index < first || random.below(3) === 0 ? undefined : oneOf(SCOPES)
  const isForPages = index >= first && random.below(8) === 0
  const properties = Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [word(), { type: 'string' as const, description: text(3) }]),
  )
  const tool = defineTool({
    name: `${word()}_${word()}_${index}`,
    ...(random.below(2) === 0 && { title: text(2) }),
    description: text(random.below(12)),
    input: { type: 'object', properties },
    ...(access !== undefined && { access }),
    ...(random.below(4) === 0 && { visibility: 'listed' as const }),
    ...(isForPages && { _meta: { ui: { visibility: ['app'] } } }),
    handler: () => '',
  }) as unknown as ToolDefinition
  return { tool, access, isForPages }
}

/** Words as they are, begun, misspelt, of nobody, and names. */
function makeQuery(all: readonly Known[]): string {
  const part = () => {
    const one = word()
    const at = random.below(one.length)
    const kinds = [
      one,
      one.slice(0, 3 + random.below(4)),
      `${one.slice(0, at)}${oneOf([...'xqz'])}${one.slice(at + 1)}`,
      `${one.slice(0, at)}${one.slice(at + 1)}`,
      `${random.below(1e9).toString(36)}zz`,
      oneOf(all).tool.name,
    ]
    return oneOf(kinds)
  }
  const kind = random.below(8)
  if (kind === 0) return oneOf(all).tool.name
  // Of one word it often depends on the hidden tools alone whether anything fits.
  return kind < 4 ? part() : Array.from({ length: 1 + random.below(6) }, part).join(' ')
}

const startWith = async (tools: readonly ToolDefinition[]): Promise<string> => {
  const plugins = { 'transport-streamable': {}, bearer: bearerJson(), 'tool-policy': { policies: POLICIES } }
  return (await startHost({ toolsets: { all: [...tools] }, routes: { '/': { toolsets: 'all', search: {} } }, plugins }))
    .url
}

/** The bytes of an answer; every request has the same id. */
async function answerOf(url: string, user: Partial<User> | undefined, args: object, name = 'find_tools') {
  const { body, headers } = modernRequest('tools/call', { name, arguments: args }, { headers: as(user), id: 1 })
  const { status, message } = await post(url, body, headers)
  // Not the text: an answer that takes its time is an event stream.
  return `${status} ${JSON.stringify(message)}`
}

const mayFind = (user: Partial<User> | undefined) => {
  const held = new Set<string | undefined>([undefined, ...(user?.scopes ?? [])])
  return ({ access, isForPages }: Known) => held.has(access) && !isForPages
}

const USERS: ReadonlyArray<Partial<User> | undefined> = [
  undefined,
  { subject: 'ann', scopes: ['sales'] },
  { subject: 'bob', scopes: ['hr', 'ops'] },
  { subject: 'eve', scopes: [] },
]
const QUERIES = caseCount(8, 4)
const SIZES = [40, 4, 120]

describe('find_tools: isolation between callers', () => {
  it('returns the same results as a host without the hidden tools', async () => {
    const sums = { found: 0, hidden: 0, nothing: 0 }
    const different: string[] = []
    for (const size of SIZES.slice(0, caseCount(SIZES.length, 2))) {
      const all = Array.from({ length: size }, (_, index) => makeTool(index, 2))
      const url = await startWith(all.map(({ tool }) => tool))
      for (const user of USERS) {
        const found = all.filter(mayFind(user))
        const alone = await startWith(found.map(({ tool }) => tool))
        sums.hidden += all.length - found.length
        for (let asked = 0; asked < QUERIES; asked += 1) {
          const args = { query: makeQuery(all), limit: 1 + random.below(20) }
          const [among, own] = await Promise.all([answerOf(url, user, args), answerOf(alone, user, args)])
          if (own.includes('"tools":[]')) sums.nothing += 1
          else sums.found += 1
          if (among !== own) different.push(`${size} tools, ${user?.subject}: ${args.query}`)
        }
        for (const { tool } of all.slice(0, 5)) {
          const args = { name: `${tool.name.slice(0, -1)}qq` }
          expect(await answerOf(url, user, args, 'call_tool')).to.equal(await answerOf(alone, user, args, 'call_tool'))
        }
      }
    }
    expect(different).to.deep.equal([])
    expect(sums.found).to.be.greaterThan(QUERIES * caseCount(6, 2))
    expect(sums.nothing).to.be.greaterThan(0)
    expect(sums.hidden).to.be.greaterThan(caseCount(200, 40))
  })

  itThorough('ranks by visible tools only among thousands of hidden tools', async () => {
    const make = (index: number, access?: string) =>
      defineTool({
        name: `${access ?? 'open'}_tool_${index}`,
        description: access === undefined && index > 4 ? 'Ledger of invoices.' : 'Order of a customer, pledged.',
        ...(access !== undefined && { access }),
        handler: () => '',
      }) as unknown as ToolDefinition
    const open = Array.from({ length: 30 }, (_, index) => make(index))
    const hidden = Array.from({ length: 6_500 }, (_, index) => make(index, 'board'))
    const [url, alone] = [await startWith([...hidden, ...open]), await startWith(open)]
    const queries = [
      'order customer pledge ledger',
      'ord cust ledg',
      'ledger order',
      'tool order ledger',
      'open pledg',
      'ordex ledger',
    ]
    for (const query of queries) {
      const args = { query, limit: 20 }
      const own = await answerOf(alone, undefined, args)
      expect(own).to.contain('open_tool_')
      expect(await answerOf(url, undefined, args), query).to.equal(own)
    }
  })

  it('corrects spelling from visible tools only, without leaking words of hidden tools', async () => {
    const open = Array.from({ length: 8 }, (_, index) =>
      defineTool({ name: `orders_${index}`, description: 'Lists invoices of customers.', handler: () => '' }),
    )
    const hidden = defineTool({
      name: 'project_bluefalcon_layoffs',
      description: 'Plans the acquisition of Wexelborg and the terminations.',
      access: 'board',
      input: { type: 'object', properties: { severance_budget: { type: 'number' } } },
      handler: () => '',
    })
    const url = await startWith([...open, hidden] as unknown as ToolDefinition[])
    const secret = ['bluefalcon', 'layoff', 'acquisition', 'wexelborg', 'termination', 'severance', 'budget', 'project']
    const begun = secret.flatMap(one => Array.from({ length: one.length - 4 }, (_, more) => one.slice(0, 5 + more)))
    const nobody = ['qqqqqq', 'xyzzyplugh', 'merger', 'salary', 'wexelburg', 'bluefalcom', 'acquizition']
    const eve = { subject: 'eve', scopes: [] }
    const told = new Map<string, string[]>()
    const candidates = [...secret, ...selectCases(begun, 10), ...nobody]
    for (const candidate of candidates) {
      for (const frame of ['qqxzwk zzqwxj ? invoyce', '? qqxzwk zzqwxj invoyce', '? invoyce zzqwxj qqxzwk']) {
        const own = await answerOf(url, eve, { query: frame.replace('?', candidate), limit: 20 })
        const answers = told.get(frame) ?? []
        told.set(frame, [...answers, own])
      }
    }
    const distinct = [...told.values()].map(answers => new Set(answers).size)
    expect(distinct).to.deep.equal([1, 1, 1])
    // Somebody who may use it finds it by each of these.
    const board = { subject: 'ann', scopes: ['board'] }
    for (const one of secret) {
      expect(await answerOf(url, board, { query: one })).to.contain('project_bluefalcon_layoffs')
      expect(await answerOf(url, eve, { query: one })).not.to.contain('bluefalcon_')
    }
  })
})
