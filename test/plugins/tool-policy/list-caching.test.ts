// Tests which callers share a list page, and how often policies are evaluated.
import { expect } from 'chai'
import { type Config, type Definition, defineTool, type User } from '../../../core/index.ts'
import type { ToolPolicyOptions } from '../../../plugins/tool-policy/index.ts'
import { modern } from '../../support/rpc.ts'
import { openSession } from '../../support/session-client.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'
import { as, createBearerJson } from './bearer-json.ts'

afterEach(stopHosts)

const tool = (name: string, access?: string) =>
  defineTool({ name, ...(access !== undefined && { access }), handler: () => 'done' })

/** Tools of which each counts how often it is written into a list. */
function countedTools(names: readonly string[], access: (name: string) => string | undefined) {
  const counts = { written: 0 }
  const toJSON = () => {
    counts.written += 1
    return {}
  }
  const all = names.map(name => ({ ...tool(name, access(name)), _meta: { toJSON } }) as unknown as Definition)
  return { counts, all }
}

async function serve(all: Definition[], options: ToolPolicyOptions, more: Partial<Config> = {}) {
  /** How often anybody looked at what a user has. */
  const looks = { count: 0 }
  const bearer = createBearerJson(({ scopes, ...user }) => ({
    // Without an issuer the host would copy the user, and read the scopes for that.
    issuer: 'https://issuer.example',
    ...user,
    get scopes() {
      looks.count += 1
      return scopes
    },
  }))
  const plugins = { 'transport-streamable': {}, bearer: bearer(), 'tool-policy': options }
  const { url, host } = await startHost({ toolsets: { all }, routes: { '/': { toolsets: 'all' } }, ...more, plugins })
  const namesFor = async (user: Partial<User> | undefined, headers: Record<string, string> = {}) => {
    const { message } = await modern(url, 'tools/list', {}, { headers: { ...headers, ...as(user) } })
    return message.result.tools.map(({ name }: { name: string }) => name)
  }
  const statusOf = async (name: string, user: Partial<User> | undefined, headers: Record<string, string> = {}) =>
    (await modern(url, 'tools/call', { name }, { headers: { ...headers, ...as(user) } })).status
  return { url, host, looks, namesFor, statusOf }
}

describe('tool-policy: cached list pages', () => {
  it('are built once for all callers with the same access', async () => {
    const { counts, all } = countedTools(['a', 'b', 'c'], name => (name === 'a' ? undefined : `may.${name}`))
    const { namesFor } = await serve(all, {})
    const ask = async (user: Partial<User> | undefined) => {
      const before = counts.written
      return [await namesFor(user), counts.written - before]
    }
    const user = (subject: string, ...scopes: string[]) => ({ subject, scopes })
    expect(await ask(user('ann', 'may.b'))).to.deep.equal([['a', 'b'], 2])
    expect(await ask(user('ann', 'may.b'))).to.deep.equal([['a', 'b'], 0])
    expect(await ask(user('bob', 'may.b', 'more'))).to.deep.equal([['a', 'b'], 0])
    expect(await ask(user('cid', 'may.c'))).to.deep.equal([['a', 'c'], 2])
    expect(await ask(undefined)).to.deep.equal([['a'], 1])
    expect(await ask(user('dan', 'none'))).to.deep.equal([['a'], 1])
    expect(await ask(undefined)).to.deep.equal([['a'], 0])
  })
})

describe('tool-policy: fifty rules', () => {
  it('are evaluated once per user, for any number of requests', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `tool-${index}`)
    const rules = Object.fromEntries(names.map(name => [`${name}*`, { scope: `may.${name}` }]))
    const { namesFor, statusOf, looks } = await serve(
      names.map(name => tool(name)),
      { rules },
    )
    const ann = { scopes: ['may.tool-7'] }
    expect(await namesFor(ann)).to.deep.equal(['tool-7'])
    const { count } = looks
    expect(count).to.be.greaterThan(0)
    for (let round = 0; round < 20; round += 1) {
      expect(await statusOf('tool-7', ann)).to.equal(200)
      expect(await statusOf('tool-8', ann)).to.equal(403)
      expect(await namesFor(ann)).to.deep.equal(['tool-7'])
    }
    expect(looks.count).to.equal(count)
    expect(await namesFor({ subject: 'bob', scopes: ['may.tool-8'] })).to.deep.equal(['tool-8'])
    expect(looks.count).to.equal(2 * count)
  })
})

describe('tool-policy: sessions', () => {
  it('apply the token of each request, not the token that opened the session', async () => {
    const { url } = await serve([tool('open'), tool('kept', 'admin')], {})
    const [less, more] = [as({ scopes: [] }), as({ scopes: ['admin'] })]
    const session = await openSession(url, { headers: less })
    const told = async (headers: Record<string, string>) => {
      const { message } = await session.request('tools/list', {}, { headers })
      const { status } = await session.request('tools/call', { name: 'kept' }, { headers })
      return [message.result.tools.map(({ name }: { name: string }) => name), status]
    }
    expect(await told(less)).to.deep.equal([['open'], 403])
    expect(await told(more)).to.deep.equal([['kept', 'open'], 200])
    expect(await told(less)).to.deep.equal([['open'], 403])
  })
})

describe('tool-policy: definitions added later', () => {
  it('by configureSession, with a new access, are decided for each caller', async () => {
    const extra = tool('late', 'late')
    const { namesFor, statusOf } = await serve(
      [tool('open')],
      {},
      {
        configureSession({ headers }, session) {
          if (headers['x-late'] !== undefined) session.add(extra)
        },
      },
    )
    const [may, mayNot] = [
      { subject: 'ann', scopes: ['late'] },
      { subject: 'bob', scopes: [] },
    ]
    // Both are known, as one audience, before the definition is.
    expect([await namesFor(may), await namesFor(mayNot)]).to.deep.equal([['open'], ['open']])
    const late = { 'X-Late': '1' }
    for (let round = 0; round < 2; round += 1) {
      expect(await namesFor(may, late)).to.deep.equal(['late', 'open'])
      expect(await namesFor(mayNot, late)).to.deep.equal(['open'])
      expect([await statusOf('late', may, late), await statusOf('late', mayNot, late)]).to.deep.equal([200, 403])
    }
  })

  it('at runtime are subject to the rules and their own access', async () => {
    const { host, namesFor, statusOf } = await serve([tool('open')], { rules: { 'purge*': { scope: 'purge' } } })
    const users = [{ scopes: ['purge'] }, { subject: 'bob', scopes: ['own'] }]
    for (const user of users) expect(await namesFor(user)).to.deep.equal(['open'])
    host.runtime.tools.add(tool('purge-all'))
    host.runtime.tools.add(tool('mine', 'own'))
    expect(await Promise.all(users.map(user => namesFor(user)))).to.deep.equal([
      ['open', 'purge-all'],
      ['mine', 'open'],
    ])
    expect(await Promise.all(users.map(user => statusOf('purge-all', user)))).to.deep.equal([200, 403])
  })
})
