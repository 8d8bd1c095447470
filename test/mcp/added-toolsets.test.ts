// Tests that startup, warnings and the lock include toolsets that only addToolset reaches.
import { expect } from 'chai'
import { readSurface } from '../../cli/lock/read-surface.ts'
import { createHost } from '../../core/create-host.ts'
import { type Config, type ConfigureSession, defineTool } from '../../core/index.ts'
import { createTestLog } from '../../core/testing/test-log.ts'
import { defineApp } from '../../plugins/apps/define-app.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { expectStopped } from '../fixtures/start-failure.ts'
import { modern, type RpcMessage } from '../support/rpc.ts'
import { startHost, stopHosts, type TestConfig } from '../support/start-host.ts'

afterEach(stopHosts)
after(removeFolders)

const tool = (name: string, more: object = {}) => defineTool({ name, handler: () => name, ...more })
const text = { type: 'object', properties: { text: { type: 'string' } } }
const vip = (more: object = {}) => tool('vip', { input: text, ...more })
const configureSession: ConfigureSession = (_, session) => session.addToolset('gold')
const config = (more: Partial<Config> = {}): TestConfig => ({
  toolsets: { basic: [tool('a')], gold: [vip()] },
  routes: { '/': { toolsets: 'basic' } },
  configureSession,
  ...more,
})

async function inspect(given: TestConfig, directory?: string) {
  const log = createTestLog()
  const base = { server: { name: 'test', version: '1' }, secrets: ['a secret for tests, long enough to be one'] }
  const options = { log, purpose: 'inspect' as const, ...(directory !== undefined && { directory }) }
  const host = await createHost(
    { ...base, ...given, plugins: { 'transport-streamable': {}, ...given.plugins } },
    options,
  )
  const surface = readSurface(host.served)
  await host.close({ grace: 0 })
  const warnings = log.lines.filter(({ level }) => level === 'warn').map(({ message = '' }) => message)
  return { surface, warnings }
}

describe('Toolset that only addToolset reaches', () => {
  it('can be pinned', async () => {
    const plugins = { 'transport-streamable': {}, 'tool-search': { pinned: ['vip'] } }
    const { url } = await startHost(config({ plugins }))
    const names = (await modern(url, 'tools/list')).message.result.tools.map(({ name }: RpcMessage) => name)
    expect(names).to.include('vip').and.not.include('a')
    await expectStopped(
      { ...config({ plugins }), configureSession: undefined as never },
      'there is no tool "vip" to pin',
    )
  })

  it('is known to the warnings about rules, rate limits and audited arguments', async () => {
    const folder = await makeFolder({})
    const plugins = {
      audit: { file: 'audit.jsonl', arguments: { vip: ['text'] } },
      'rate-limit': { tools: { vip: '3/1m' } },
      'tool-policy': { rules: { vip: 'staff' }, policies: { staff: { role: 'staff' } } },
    }
    const tools = { limits: { 'vi*': { concurrency: 1 } } }
    const about = (warnings: string[]) => warnings.filter(text => /vip|vi\*/.test(text))
    expect(about((await inspect(config({ plugins, tools }), folder)).warnings)).to.deep.equal([])
    const { configureSession: _, ...without } = config({ plugins, tools })
    const warnings = about((await inspect(without, folder)).warnings)
    expect(warnings).to.have.length(3)
    expect(warnings.join()).not.to.include('vi*')
  })

  it('is warned of if its access is no policy, scope or role', async () => {
    const plugins = { 'tool-policy': { policies: { staff: { role: 'staff' } } } }
    const toolsets = { basic: [tool('a')], gold: [vip({ access: 'staf' })] }
    expect((await inspect(config({ plugins, toolsets }))).warnings.join()).to.match(
      /"vip" requires "staf", which is not a policy/,
    )
  })

  it('stops startup if no route can serve it', async () => {
    const plugins = { 'transport-streamable': {} }
    const toolsets = { basic: [tool('a')], gold: [vip({ task: 'required' })] }
    const off = { '/': { toolsets: 'basic', plugins: { tasks: false as const } } }
    const on = { '/tasks': { toolsets: 'basic' } }
    const tasks = { ...plugins, tasks: {} }
    const refused = config({ toolsets, plugins: tasks, routes: off })
    await expectStopped(refused, /tool "vip".*`task`/)
    await inspect(config({ toolsets, plugins: tasks, routes: { ...off, ...on } }))
  })

  it('fails addToolset on a route that does not support the key of a tool', async () => {
    let thrown: unknown
    const toolsets = { basic: [tool('a')], gold: [vip({ task: 'required' })] }
    const { url } = await startHost({
      toolsets,
      routes: { '/': { toolsets: 'basic', plugins: { tasks: false } }, '/tasks': { toolsets: 'basic' } },
      plugins: { 'transport-streamable': {}, tasks: {} },
      configureSession(_, session) {
        try {
          session.addToolset('gold')
        } catch (error) {
          thrown = error
        }
      },
    })
    expect((await modern(url, 'tools/list')).message.result.tools).to.have.length(1)
    expect(String(thrown)).to.match(/routes\['\/'\] serves the tool "vip", whose `task` no plugin of this route reads/)
    expect((await modern(`${url}/tasks`, 'tools/list')).message.result.tools).to.have.length(2)
  })

  it('stops startup if the page of its app is missing', async () => {
    const folder = await makeFolder({})
    const app = defineApp({ name: 'page', html: './missing.html' })
    const toolsets = { basic: [tool('a')], gold: [vip({ app })] }
    const failed = await inspect(config({ toolsets, plugins: { apps: {} } }), folder).then(
      () => undefined,
      (error: unknown) => String(error),
    )
    expect(failed).to.match(/missing\.html/)
  })

  it('is part of the lock, so that a changed description is detected', async () => {
    const first = await inspect(config())
    const { routes } = first.surface
    expect(Object.keys(routes)).to.deep.equal(['/', '/ with gold'])
    expect(Object.keys(routes['/ with gold']?.tools ?? {})).to.deep.equal(['vip'])
    const toolsets = { basic: [tool('a')], gold: [vip({ description: 'other' })] }
    expect((await inspect(config({ toolsets }))).surface.hash).not.to.equal(first.surface.hash)
    const { configureSession: _, ...without } = config()
    expect(Object.keys((await inspect(without)).surface.routes)).to.deep.equal(['/'])
  })
})
