// find_tools with tool-policy: callers find only tools that they are allowed to call.
import { expect } from 'chai'
import { defineTool, type User } from '../../../core/index.ts'
import { modern, type RpcMessage } from '../../support/rpc.ts'
import { createSeededRandom } from '../../support/seeded-random.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { caseCount, selectCases } from '../../support/thorough.ts'
import { as, bearerJson } from '../tool-policy/bearer-json.ts'

after(stopHosts)

const SCOPES = ['sales', 'stock', 'hr', 'ops', 'admin']
/** Some need a scope, some a role, some nothing; all have the same words. */
const TOOLS = Array.from({ length: 300 }, (_, index) => {
  const scope = [...SCOPES, undefined, 'manager'][index % 7]
  return {
    scope,
    tool: defineTool({
      name: `${scope ?? 'open'}_record_${index}`,
      description: `Changes record ${index} of the company.`,
      ...(scope !== undefined && { access: scope }),
      // Every third is shown in lists to those who may not call it, too.
      ...(index % 3 === 0 && { visibility: 'listed' as const }),
      handler: () => 'done',
    }),
  }
})
const QUERIES = [
  'record',
  'change the company',
  'admin_record_4',
  'hr manager',
  'sales stock ops',
  'record 12',
  'adnim',
]

describe('find_tools with tool-policy', () => {
  let url: string
  const random = createSeededRandom(7)
  before(async () => {
    const policies = {
      ...Object.fromEntries(SCOPES.map(scope => [scope, { scope }])),
      manager: { role: 'manager' },
    }
    ;({ url } = await startHost({
      toolsets: { all: TOOLS.map(({ tool }) => tool) },
      routes: { '/': { toolsets: 'all', search: { pinned: ['admin_record_*'] } } },
      plugins: { 'transport-streamable': {}, bearer: bearerJson(), 'tool-policy': { policies } },
    }))
  })

  /** Undefined: anonymous. */
  function someUser(index: number): Partial<User> | undefined {
    if (index === 0) return undefined
    const scopes = SCOPES.filter(() => random.below(10) < 4)
    return { subject: `user-${index}`, scopes, roles: random.below(10) < 3 ? ['manager'] : [] }
  }
  const mayCall = (user: Partial<User> | undefined) => {
    const held = new Set([undefined, ...(user?.scopes ?? []), ...(user?.roles ?? [])])
    return new Set(TOOLS.filter(({ scope }) => held.has(scope)).map(({ tool }) => tool.name))
  }
  const ask = async (user: Partial<User> | undefined, method: string, params = {}): Promise<RpcMessage> =>
    (await modern(url, method, params, { headers: as(user) })).message
  const find = async (user: Partial<User> | undefined, query: string, limit = 20): Promise<string[]> => {
    const { result } = await ask(user, 'tools/call', { name: 'find_tools', arguments: { query, limit } })
    return result.structuredContent.tools.map(({ name }: { name: string }) => name)
  }

  it('returns every matching tool that the caller can call, and no other tool', async () => {
    let found = 0
    let forbidden = 0
    let asked = 0
    for (let index = 0; index < caseCount(40, 6); index += 1) {
      const user = someUser(index)
      const may = mayCall(user)
      for (const query of QUERIES) {
        const names = await find(user, query)
        asked += 1
        found += names.length
        forbidden += names.filter(name => !may.has(name)).length
      }
      expect(await find(user, 'record'), 'as many as there are').to.have.lengthOf(Math.min(20, may.size))
    }
    expect(forbidden).to.equal(0)
    expect(found).to.be.greaterThan(asked * 5)
  })

  it('uses the token of the current request, independent of previous callers', async () => {
    const some = { subject: 'ann', scopes: ['admin'] }
    const none = { subject: 'ann', scopes: [] }
    const both = await Promise.all([some, none, undefined, some].map(user => find(user, 'admin_record_4')))
    for (const [at, names] of both.entries()) {
      const isAdmin = at % 3 === 0
      expect(
        names.some(name => name.startsWith('admin')),
        `${at}`,
      ).to.equal(isAdmin)
    }
  })

  it('suggests no hidden tool name for a misspelled name', async () => {
    let told = 0
    for (const { tool } of selectCases(TOOLS.slice(0, 70), 30)) {
      const wrong = `${tool.name}9x`
      for (const user of [undefined, { subject: 'ann', scopes: ['sales'] }]) {
        const { result } = await ask(user, 'tools/call', { name: 'call_tool', arguments: { name: wrong } })
        const [, near] = /Did you mean "(.+)"/.exec(result.content[0].text) ?? []
        if (near === undefined) continue
        told += 1
        expect(mayCall(user).has(near), near).to.equal(true)
      }
    }
    expect(told).to.be.greaterThan(0)
  })

  it('lists only pinned tools that the policy shows to the caller', async () => {
    const names = async (user?: Partial<User>) =>
      (await ask(user, 'tools/list')).result.tools.map(({ name }: { name: string }) => name)
    const admins = TOOLS.filter(({ scope }) => scope === 'admin').map(({ tool }) => tool)
    const shown = admins.filter(({ visibility }) => visibility === 'listed')
    const sorted = (tools: typeof admins) => ['call_tool', 'find_tools', ...tools.map(({ name }) => name)].sort()
    expect(await names({ subject: 'ann', scopes: ['admin'] })).to.deep.equal(sorted(admins))
    expect(await names()).to.deep.equal(sorted(shown))
  })
})
