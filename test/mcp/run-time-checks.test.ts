// Tests that definitions which arrive at run time get the checks of startup, at the call that adds them.
import { expect } from 'chai'
import {
  type ConfigureSession,
  type Definition,
  definePrompt,
  defineResource,
  defineTool,
  type RuntimeHost,
} from '../../core/index.ts'
import { identifyByHeader } from '../fixtures/identify-by-header.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { openSession } from '../support/session-client.ts'
import { startHost, stopHosts } from '../support/start-host.ts'

afterEach(stopHosts)

const tool = (name: string, more: object = {}) => defineTool({ name, handler: () => name, ...more })
const resource = (uri: string, more: object = {}) => defineResource({ name: uri, uri, handler: () => uri, ...more })
const template = (uriTemplate: string, more: object = {}) =>
  defineResource({ name: uriTemplate, uriTemplate, handler: () => '', ...more })
const prompt = (name: string, more: object = {}) => definePrompt({ name, handler: () => name, ...more })

type Kind = 'tools' | 'resources' | 'prompts'
const KINDS: ReadonlyArray<readonly [string, Kind, (name: string, more?: object) => Definition]> = [
  ['tool', 'tools', tool],
  ['resource', 'resources', name => resource(`${name}:it`)],
  ['resource template', 'resources', name => template(`${name}:{it}`)],
  ['prompt', 'prompts', prompt],
]
const restricted: ReadonlyArray<readonly [string, Kind, Definition]> = [
  ['tool', 'tools', tool('vip', { access: 'staff' })],
  ['resource', 'resources', resource('vip:it', { access: 'staff' })],
  ['resource template', 'resources', template('vip:{it}', { access: 'staff' })],
  ['prompt', 'prompts', prompt('vip', { access: 'staff' })],
]

const add = (runtime: RuntimeHost, kind: Kind, definition: Definition, toolset?: string) =>
  runtime[kind].add(definition as never, toolset === undefined ? {} : { toolset })

const policy = {
  plugins: {
    'transport-streamable': {},
    who: identifyByHeader(),
    'tool-policy': { policies: { staff: { role: 'staff' } } },
  },
}
const open = { 'tool-policy': false } as const

describe('Definitions added at run time', () => {
  for (const [what, kind, definition] of restricted) {
    it(`with access: a ${what} is refused where a route has no policy plugin, and the route still works`, async () => {
      const { url, host } = await startHost({
        toolsets: { one: [tool('a')], other: [tool('b')] },
        routes: { '/': { toolsets: 'one' }, '/open': { toolsets: 'other', plugins: open } },
        ...policy,
      })
      const session = await openSession(`${url}/open`)
      const words = /^routes\['\/open'\] serves "vip.*", which requires access "staff"/
      expect(() => add(host.runtime, kind, definition)).to.throw(words)
      expect(() => add(host.runtime, kind, definition, 'other')).to.throw(words)
      for (const path of ['', '/open']) expect((await modern(url + path, 'tools/list')).status).to.equal(200)
      expect((await session.request('tools/list')).message.result.tools).to.have.length(1)
      add(host.runtime, kind, definition, 'one')
      expect((await modern(`${url}/open`, 'tools/list')).status).to.equal(200)
    })
  }

  for (const [what, kind, make] of KINDS) {
    it(`with a name that addToolset brought to a caller: a ${what} is refused, naming both places`, async () => {
      const { url, host } = await startHost({
        toolsets: { basic: [tool('a')], gold: [tool('g'), make('x')] },
        routes: { '/': { toolsets: 'basic' } },
        configureSession: (_, session) => session.addToolset('gold'),
      })
      const session = await openSession(url)
      const { [kind]: items } = host.runtime
      for (const [toolset, where] of [
        [undefined, 'every route'],
        ['basic', 'toolset "basic"'],
      ] as const) {
        const adding = () => items.add(make('x') as never, toolset === undefined ? {} : { toolset })
        expect(adding).to.throw(`two ${kind} are called "x`).with.property('message').that.includes(where)
        expect(adding).to.throw(/toolset "gold"/)
      }
      expect((await session.request('tools/list')).message).to.have.property('result')
      expect((await modern(url, 'tools/list')).status).to.equal(200)
    })

    it(`with a name that session.add brought to a caller: a ${what} is refused, naming both places`, async () => {
      const own = make('x')
      const { url, host } = await startHost({
        toolsets: { basic: [tool('a')] },
        routes: { '/': { toolsets: 'basic' } },
        configureSession: (_, session) => session.add(own),
      })
      await modern(url, 'tools/list')
      expect(() => add(host.runtime, kind, make('x'), 'basic')).to.throw(/in toolset "basic" and in configureSession/)
      expect((await modern(url, 'tools/list')).status).to.equal(200)
    })
  }

  it('get the warnings of startup once, and its errors', async () => {
    const { host, log } = await startHost({ toolsets: { one: [] }, routes: { '/': { toolsets: 'one' } } })
    const odd = tool('odd name')
    for (const _ of [1, 2]) {
      host.runtime.tools.add(odd)
      host.runtime.tools.remove('odd name')
    }
    const warned = log.filter(
      ({ level, message }) => level === 'warn' && message?.includes('clients may refuse its name'),
    )
    expect(warned).to.have.length(1)
    expect(() => host.runtime.tools.add(tool('shut', { input: { type: 'string' } }))).to.throw(/"object"/)
  })
})

describe('Definitions that configureSession adds', () => {
  const fail = async (configureSession: ConfigureSession, more: object = {}) => {
    let thrown: unknown
    const { url, host, log } = await startHost({
      toolsets: { basic: [tool('a')], gold: [tool('a')], vip: [tool('v', { access: 'staff' })], own: [tool('b')] },
      routes: { '/': { toolsets: 'basic', plugins: open }, '/policy': { toolsets: 'own' } },
      ...policy,
      configureSession(request, session, context) {
        try {
          return configureSession(request, session, context)
        } catch (error) {
          thrown = error
        }
      },
      ...more,
    })
    return { url, host, log, thrown: () => String(thrown) }
  }

  it('are checked by addToolset: names, and access on a route without policy', async () => {
    const twice = await fail((_, session) => session.addToolset('gold'))
    const list = async (url: string) =>
      (await modern(url, 'tools/list')).message.result.tools.map((t: RpcMessage) => t.name)
    expect(await list(twice.url)).to.deep.equal(['a'])
    expect(twice.thrown()).to.match(/two tools are called "a": in toolset "basic" and in toolset "gold"/)
    const vip = await fail((_, session) => session.addToolset('vip'))
    expect(await list(vip.url)).to.deep.equal(['a'])
    expect(vip.thrown()).to.match(/routes\['\/'\] serves "v", which requires access "staff"/)
    expect((await modern(`${vip.url}/policy`, 'tools/call', { name: 'v' })).status).to.equal(401)
  })

  it('are checked by session.add: names, and access on a route without policy', async () => {
    const own = [tool('a'), tool('vip', { access: 'staff' })] as const
    for (const [index, words] of [/in toolset "basic" and in configureSession/, /requires access "staff"/].entries()) {
      const { url, thrown } = await fail((_, session) => session.add(own[index] as Definition))
      expect((await modern(url, 'tools/list')).message.result.tools).to.have.length(1)
      expect(thrown()).to.match(words)
    }
  })

  it('are checked against definitions that were added at run time', async () => {
    const { url, host, thrown } = await fail((_, session) => session.addToolset('own'))
    host.runtime.tools.add(tool('b'), { toolset: 'basic' })
    expect((await modern(url, 'tools/list')).message.result.tools).to.have.length(2)
    expect(thrown()).to.match(/two tools are called "b": in toolset "basic" and in toolset "own"/)
  })

  it('can replace a toolset by another with the same names: remove first', async () => {
    const { url, thrown } = await fail((_, session) => {
      session.removeToolset('basic')
      session.addToolset('gold')
    })
    expect((await modern(url, 'tools/list')).message.result.tools).to.have.length(1)
    expect(thrown()).to.equal('undefined')
  })
})
