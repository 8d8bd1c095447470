// Tests the catalog of definitions: name conflicts, validation and changes at run time.
import { expect } from 'chai'
import { type Definition, definePrompt, defineResource, defineTool } from '../../core/index.ts'
import type { Change } from '../../core/transport.ts'
import { plugin } from '../fixtures/plugins.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const tool = (name: string, more: object = {}) => defineTool({ name, handler: () => name, ...more })
const resource = (uri: string) => defineResource({ name: uri, uri, handler: () => uri })
const prompt = (name: string) => definePrompt({ name, handler: () => name })

const names = async (url: string, list = 'tools') => {
  const { result, error } = (await modern(url, `${list}/list`)).message
  return error?.code ?? result[list].map(({ name }: RpcMessage) => name)
}

describe('Duplicate definition names stop startup', () => {
  const one = (all: Definition[]) => ({ toolsets: { all }, routes: { '/': { toolsets: 'all' } } })

  it('within one toolset, for each kind', async () => {
    await expectStopped(one([tool('a'), tool('a')]), 'two tools are called "a": in toolset "all"')
    await expectStopped(one([prompt('a'), prompt('a')]), 'two prompts are called "a": in toolset "all"')
    await expectStopped(one([resource('a:b'), resource('a:b')]), 'two resources are called "a:b": in toolset "all"')
  })

  it('across two toolsets of one route, naming both', async () => {
    const toolsets = { first: [tool('a')], second: [tool('b'), tool('a')] }
    const words = 'two tools are called "a": in toolset "first" and in toolset "second"'
    await expectStopped({ toolsets, routes: { '/': { toolsets: ['first', 'second'] } } }, words)
    const byDefault = { '/:set?': { toolsets: ':set', default: ['first', 'second'] } }
    await expectStopped({ toolsets, routes: byDefault }, words)
  })

  it('except for different kinds or toolsets that share no route', async () => {
    const toolsets = { first: [tool('a'), prompt('a'), resource('a:a')], second: [tool('a')] }
    const routes = { '/': { toolsets: 'first' }, '/2': { toolsets: 'second' }, '/t/:set': { toolsets: ':set' } }
    const { url } = await startHost({ toolsets, routes })
    for (const path of ['', '/2', '/t/first', '/t/second']) expect(await names(url + path)).to.deep.equal(['a'])
  })
})

describe('Invalid definitions stop startup with toolset, name and reason', () => {
  const input = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
  const header = (value: unknown, more: object = {}) => ({ type: 'string', 'x-mcp-header': value, ...more })
  const family = (uriTemplate: string, more: object = {}) =>
    defineResource({ name: 'r', uriTemplate, handler: () => '', ...more })
  const bad: Array<[string, unknown, RegExp]> = [
    ['an input that is no schema', tool('t', { input: 'text' }), /tool "t".*JSON Schema/],
    ['an invalid output schema', tool('t', { output: { type: 7 } }), /tool "t"/],
    [
      'a header that is no token',
      tool('t', { input: input({ a: header('a b') }) }),
      /tool "t": x-mcp-header at.*"a b"/,
    ],
    ['a header twice', tool('t', { input: input({ a: header('R'), b: header('r') }) }), /tool "t".*"r" is used by/],
    [
      'a header on an object',
      tool('t', { input: input({ a: header('A', { type: 'object' }) }) }),
      /tool "t".*`type` must/,
    ],
    [
      'a header inside a list',
      tool('t', { input: input({ a: { type: 'array', items: header('A') } }) }),
      /tool "t".*below `properties`/,
    ],
    ['a template that is not closed', family('a:{b'), /resource "r".*not closed/],
  ]
  for (const [what, definition, words] of bad) {
    it(what, async () => {
      const all = [definition as Definition]
      const config = { toolsets: { fine: [tool('fine')], all }, routes: { '/': { toolsets: 'fine' } } }
      await expectStopped(config, words)
      await expectStopped(config, /toolset "all"|toolsets\.all/)
    })
  }

  it('for values that no define… function created', async () => {
    for (const all of [[{ name: 't', handler: () => 't' }], [null], [5], { name: 't' }]) {
      const config = { toolsets: { all: all as never }, routes: { '/': { toolsets: 'all' } } }
      await expectStopped(config, /toolset "all": not a definition|toolsets\.all/)
    }
  })
})

describe('host.tools.add and remove at run time', () => {
  const changes: Change[] = []
  const listens = plugin(host => {
    host.onReady(() => {
      const services = host.services
      for (const route of host.routes.slice(0, 1))
        services.slot('changeBus', route).subscribe(change => changes.push(change))
    })
  })
  const start = async () => {
    changes.length = 0
    return startHost({
      toolsets: { one: [tool('a')], two: [tool('b')] },
      routes: { '/': { toolsets: ['one', 'two'] }, '/one': { toolsets: 'one' } },
      plugins: { 'transport-streamable': {}, listens },
    })
  }

  it('change lists and callable tools of all routes, or of routes with the toolset', async () => {
    const { url, host } = await start()
    const { tools } = host.runtime
    tools.add(tool('everywhere'))
    tools.add(tool('in two'), { toolset: 'two' })
    expect(await names(url)).to.deep.equal(['a', 'b', 'everywhere', 'in two'])
    expect(await names(`${url}/one`)).to.deep.equal(['a', 'everywhere'])
    const { message } = await modern(url, 'tools/call', { name: 'in two' })
    expect(message.result.content[0].text).to.equal('in two')
    expect(tools.remove('everywhere')).to.equal(true)
    expect(tools.remove('b', { toolset: 'two' })).to.equal(true)
    expect(await names(url)).to.deep.equal(['a', 'in two'])
    expect((await modern(url, 'tools/call', { name: 'b' })).message.error.code).to.equal(-32602)
  })

  it('publish each change on the change bus with kind and toolset', async () => {
    const { host } = await start()
    const { tools, resources, prompts, resourceUpdated } = host.runtime
    tools.add(tool('new'))
    resources.add(resource('new:it'), { toolset: 'one' })
    prompts.add(prompt('new'))
    resourceUpdated('new:it')
    expect(tools.remove('never there')).to.equal(false)
    expect(tools.remove('a')).to.equal(false)
    expect(resources.remove('new:it', { toolset: 'one' })).to.equal(true)
    expect(changes).to.deep.equal([
      { kind: 'tools' },
      { kind: 'resources', toolset: 'one' },
      { kind: 'prompts' },
      { kind: 'resource', uri: 'new:it' },
      { kind: 'resources', toolset: 'one' },
    ])
  })

  it('add a capability with the first definition of a kind and remove it with the last', async () => {
    const { url, host } = await start()
    const capabilities = async () => Object.keys((await modern(url, 'server/discover')).message.result.capabilities)
    expect(await capabilities()).to.have.members(['logging', 'tools'])
    expect(await names(url, 'prompts')).to.deep.equal([])
    host.runtime.prompts.add(prompt('p'))
    expect(await capabilities()).to.have.members(['logging', 'tools', 'prompts'])
    expect(await names(url, 'prompts')).to.deep.equal(['p'])
    host.runtime.prompts.remove('p')
    expect(await names(url, 'prompts')).to.deep.equal([])
  })

  it('reject a duplicate name without changing anything', async () => {
    const { url, host } = await start()
    const { tools } = host.runtime
    tools.add(tool('new'))
    changes.length = 0
    expect(() => tools.add(tool('new'))).to.throw('two tools are called "new": in every route')
    expect(() => tools.add(tool('a'), { toolset: 'one' })).to.throw('two tools are called "a": in toolset "one"')
    const twice = (name: string, one: string, other: string) =>
      `two tools are called "${name}": in ${one} and in ${other}`
    expect(() => tools.add(tool('a'))).to.throw(twice('a', 'toolset "one"', 'every route'))
    expect(() => tools.add(tool('a'), { toolset: 'two' })).to.throw(twice('a', 'toolset "one"', 'toolset "two"'))
    expect(() => tools.add(tool('new'), { toolset: 'two' })).to.throw(twice('new', 'toolset "two"', 'every route'))
    expect(() => tools.add(tool('c'), { toolset: 'three' })).to.throw(
      'there is no toolset "three"; available: one, two',
    )
    expect(() => tools.add(tool('bad', { input: { type: 'array' } }))).to.throw(/tool "bad".*must be "object"/)
    expect(() => tools.add(tool('shut', { access: 'admin' }))).to.throw(/"admin"/)
    expect(await names(url)).to.deep.equal(['a', 'b', 'new'])
    expect(changes).to.deep.equal([])
  })

  it('are available to handlers without affecting the running call', async () => {
    const grows = defineTool({
      name: 'grow',
      handler(_args, { host }) {
        host.tools.add(tool('grown'))
        host.tools.remove('grow', { toolset: 'all' })
        return 'done'
      },
    })
    const { url } = await startHost({ toolsets: { all: [grows] }, routes: { '/': { toolsets: 'all' } } })
    expect((await modern(url, 'tools/call', { name: 'grow' })).message.result.content[0].text).to.equal('done')
    expect(await names(url)).to.deep.equal(['grown'])
  })
})
