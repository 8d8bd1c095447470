// Tests config reload with sessions that `configureSession` customized.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { createGate } from '../support/gate.ts'
import { type ReloadingHost, startReloading, stopReloading } from '../support/reloading-host.ts'
import type { RpcMessage } from '../support/rpc.ts'
import { listen, nextMessage, openSession, type SessionClient } from '../support/session-client.ts'
import type { StreamExchange } from '../support/stream-exchange.ts'

after(async () => {
  await stopReloading()
  await removeFolders()
})

const namesIn = ({ result }: RpcMessage): string[] => result.tools.map((tool: { name: string }) => tool.name)
const toolsOf = async (session: SessionClient) => namesIn((await session.request('tools/list')).message)
const call = async (session: SessionClient, name: string) =>
  (await session.request('tools/call', { name })).message.result?.content[0].text

async function methodsOf(stream: StreamExchange, count: number) {
  const methods: string[] = []
  while (methods.length < count) methods.push((await nextMessage(stream))?.method ?? 'the end')
  return methods
}

const CONFIG = `import { defineConfig, defineResource, defineTool } from HERE
const tool = (name: string) => defineTool({ name, handler: () => name })
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: {
    main: [tool('a'), tool('danger')],
    beta: [defineTool({ name: 'x', handler: () => 'beta x' }), defineResource({ name: 'note', uri: 'note://a', handler: () => 'a' })],
    admin: [tool('wipe')],
    more: [tool('more')],
  },
  routes: { '/': { toolsets: ['main'] }, '/both': { toolsets: ['main', 'admin'] }, '/beta': { toolsets: ['beta'] }, '/of/:category?': { toolsets: ':category', default: ['admin'] } },
  async configureSession({ headers }, session) {
    await (globalThis as any).reloadGate?.()
    session.server = { ...session.server, instructions: 'for you' }
    if (headers['x-beta']) session.addToolset('beta')
    if (headers['x-narrow']) for (const name of session.toolsets) if (name === 'admin') session.removeToolset(name)
  },
  plugins: { 'transport-streamable': {}, 'tool-policy': { policies: { staff: { scope: 'staff' } }, rules: {} } },
})
`

const gates = globalThis as { reloadGate?: (() => Promise<void>) | undefined }

describe('config reload: sessions customized by configureSession', () => {
  let served: ReloadingHost
  const open = (path: string, headers: Record<string, string> = {}) => openSession(`${served.url}${path}`, { headers })
  let both = ''
  async function serveBoth(names: string) {
    await served.edit('mcp.config.ts', `'/both': { toolsets: [${both}]`, `'/both': { toolsets: [${names}]`)
    both = names
  }

  beforeEach(async () => {
    both = "'main', 'admin'"
    served = await startReloading({ 'mcp.config.ts': CONFIG })
  })
  afterEach(() => {
    gates.reloadGate = undefined
  })

  it('removes what the route no longer serves and keeps what was added to the session', async () => {
    const session = await open('/both', { 'x-beta': 'yes' })
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger', 'wipe', 'x'])
    await serveBoth("'main'")
    await served.reload()
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger', 'x'])
    expect(await call(session, 'wipe')).to.equal(undefined)
    await serveBoth("'main', 'admin', 'more'")
    await served.reload()
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger', 'more', 'wipe', 'x'])
  })

  it('adds no toolset that configureSession did not see', async () => {
    const session = await open('/both', { 'x-narrow': 'yes' })
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger'])
    await serveBoth("'main', 'admin', 'more'")
    await served.reload()
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger'])
    await serveBoth("'more'")
    await served.reload()
    expect([await call(session, 'a'), await call(session, 'more')]).to.deep.equal([undefined, undefined])
  })

  it('notifies once when the URL no longer serves anything', async () => {
    const session = await open('/of')
    const stream = await session.get()
    await served.edit('mcp.config.ts', ", default: ['admin']", '')
    expect(await served.reload()).to.include({ told: 1 })
    expect((await nextMessage(stream))?.method).to.equal('notifications/tools/list_changed')
  })

  it('a session opened during a reload gets the new definitions', async () => {
    const [asked, goOn] = [createGate(), createGate()]
    let times = 0
    gates.reloadGate = async () => {
      if (++times > 1) return
      asked.open()
      await goOn.opened
    }
    const opening = open('/both')
    await asked.opened
    await serveBoth("'main'")
    await served.reload()
    goOn.open()
    const session = await opening
    expect(times).to.equal(2)
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger'])
  })

  it('a session gets the latest definitions when reloads interrupt each configureSession run', async () => {
    let times = 0
    gates.reloadGate = async () => {
      if (++times > 6) return
      await serveBoth(times % 2 === 1 ? "'main', 'more'" : "'main'")
      await served.reload()
    }
    const session = await open('/both')
    expect(times).to.equal(4)
    expect(await toolsOf(session)).to.deep.equal(['a', 'danger'])
  })

  it('a conflicting session customization fails only its own session until it is fixed', async () => {
    const other = await open('/')
    const beta = await open('/', { 'x-beta': 'yes' })
    const betaStream = await beta.get()
    await beta.request('resources/subscribe', { uri: 'note://a' })
    const otherStream = await other.get()
    const watching = await listen(`${served.url}/beta`, { resourceSubscriptions: ['note://a'] })
    await watching.next()

    await served.edit('mcp.config.ts', "tool('danger')]", "tool('danger'), tool('x')]")
    expect(await served.reload()).to.deep.equal({ restart: [], taken: ['toolsets.main'], told: 2 })
    expect(await call(other, 'x')).to.equal('x')
    const { message } = await beta.request('tools/list')
    expect(message.error.code).to.equal(-32603)
    await beta.request('tools/call', { name: 'x' })
    const told = served.log.filter(({ message }) => message?.includes('configureSession'))
    expect(told.map(({ err }) => (err as Error).message).join('\n')).to.match(/^.*"x".*"beta".*"main".*$/)
    served.host.runtime.resourceUpdated('note://a')
    expect((await nextMessage(watching))?.method).to.equal('notifications/resources/updated')

    await served.edit('mcp.config.ts', 'rules: {}', "rules: { danger: 'staff' }")
    expect((await served.reload()).taken).to.deep.equal(["plugins['tool-policy']"])
    expect(await call(other, 'danger')).to.equal(undefined)
    await served.edit('mcp.config.ts', "tool('danger'), tool('x')]", "tool('danger')]")
    expect((await served.reload()).taken).to.deep.equal(['toolsets.main'])
    expect(await call(beta, 'x')).to.equal('beta x')
    served.host.runtime.resourceUpdated('note://a')
    const every = ['tools', 'resources', 'prompts'].map(kind => `notifications/${kind}/list_changed`)
    const toBeta = [...every, ...every, ...every, 'notifications/resources/updated']
    expect(await methodsOf(betaStream, toBeta.length)).to.deep.equal(toBeta)
    expect(await methodsOf(otherStream, 3)).to.deep.equal(Array(3).fill('notifications/tools/list_changed'))
  })
})
