// Tests isolated tools in the processes that a host starts: their lifetime, limits, context and modules.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { Host } from '../../core/host.ts'
import { definePlugin } from '../../core/plugin.ts'
import { testHost } from '../../core/testing.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { eventually } from '../support/eventually.ts'
import { type ReloadingHost, startReloading } from '../support/reloading-host.ts'
import { loops } from './tools.ts'

after(removeFolders)

const TOOLS = join(import.meta.dirname, 'tools.ts')
const base = { server: { name: 'isolated', version: '1' }, routes: { '/': { toolsets: 'all' } } }

const callText = async (host: Host, name: string): Promise<string> => {
  const response = await fetch(host.url, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': name,
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name,
        arguments: {},
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
          'io.modelcontextprotocol/clientCapabilities': {},
        },
      },
    }),
  })
  const text = await response.text()
  return (/"text":"([^"]*)"/.exec(text) ?? [])[1] ?? text
}

describe('Isolated tool in its process', () => {
  it('may be every tool of a route with `search`, but for its own two', async () => {
    await using host = await testHost({
      ...base,
      toolsets: { all: TOOLS },
      routes: { '/': { toolsets: 'all', search: {} } },
      tools: { limits: { '*': { isolate: true } } },
    })
    await using client = await host.client()
    const found = await client.callTool('find_tools', { query: 'plain' })
    expect(JSON.stringify(found.structured)).to.include('plain')
    const { structured } = await client.callTool('call_tool', { name: 'where', arguments: {} })
    expect(structured).to.include({ isMainThread: false })
  })

  it('can be isolated by the operator; the stricter limit wins', async () => {
    const limits = { where: { isolate: { cpuTime: '100ms' } }, loop_loop: { isolate: { cpuTime: '50ms' } } } as const
    await using host = await testHost({ ...base, toolsets: { all: TOOLS }, tools: { limits } })
    await using client = await host.client()
    expect((await client.callTool('loop_loop')).text).to.match(/^loop_loop.*50 ms.*CPU/)
  })

  it('receives members of plugins only if they are functions, which are created at their first use', async () => {
    const created: string[] = []
    const vault = definePlugin({
      options: { type: 'object', additionalProperties: false, properties: {} },
      context: { vault: undefined as object | undefined, tenant: async () => 'none', failing: async () => 'none' },
      setup(plugin) {
        plugin.context('vault', () => ({ password: created.push('vault') }))
        plugin.context('tenant', () => async () => `tenant ${created.push('tenant')}`)
        plugin.context('failing', () => {
          throw new Error('no tenant')
        })
      },
    })
    await using host = await testHost({ ...base, toolsets: { all: TOOLS }, plugins: { vault: vault() } })
    await using client = await host.client()
    expect((await client.callTool('members', { name: 'absent' })).text).to.equal('"no value" undefined')
    expect(created).to.deep.equal([])
    expect((await client.callTool('members', { name: 'tenant' })).text).to.equal('"no value" tenant 1')
    expect((await client.callTool('members', { name: 'vault' })).text).to.equal('members failed')
    expect(created).to.deep.equal(['tenant'])
    const [refused] = host.logged('error').map(({ err }) => (err as Error).message)
    expect(refused).to.include('ctx.vault is a value')
  })

  it('starts processes at the first call and ends them with the host', async () => {
    const host = await testHost({ ...base, toolsets: { all: TOOLS } })
    const client = await host.client()
    const { structured } = await client.callTool('where')
    const { pid } = structured as { pid: number }
    const isRunning = () => existsSync(`/proc/${pid}`)
    expect(isRunning()).to.equal(true)
    const running = client.callTool('odd_never').catch(error => error)
    await host.close()
    await running
    await eventually('its process has ended', () => !isRunning())
    expect(loops).to.have.lengthOf(4)
  })
})

const CONFIG = `import { defineConfig } from HERE
export default defineConfig({
  server: { name: 'reloaded', version: '1' },
  http: { port: 0 },
  toolsets: { all: './tool.ts' },
  routes: { '/': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {} },
})
`
const TOOL = `import { defineTool } from HERE
import { isMainThread } from 'node:worker_threads'
import { text } from './text.ts'
export const said = defineTool({ name: 'said', isolate: true, handler: () => text + ' ' + isMainThread })
`

it('An isolated tool has an app, whose page is served', async () => {
  const folder = await makeFolder({
    'draw.js': `import { defineTool } from '${join(import.meta.dirname, '../../core/index.ts')}'
import { defineApp } from '${join(import.meta.dirname, '../../plugins/apps/define-app.ts')}'
export const draw = defineTool({ name: 'draw', isolate: true, app: defineApp({ name: 'chart', html: '<!doctype html><p>A page</p>' }),
  handler: () => ({ n: 1 }) })`,
  })
  await using host = await testHost({ ...base, toolsets: { all: join(folder, 'draw.js') }, plugins: { apps: {} } })
  await using client = await host.client()
  expect(JSON.stringify(await client.readResource('ui://chart/app.html'))).to.include('<p>A page</p>')
  const { structured, text } = await client.callTool('draw')
  expect([structured, text]).to.deep.equal([{ n: 1 }, '{"n":1}'])
})

describe('Isolated tool module', () => {
  let reloading: ReloadingHost
  const start = async (files: Record<string, string>) => {
    reloading = await startReloading({ 'mcp.config.ts': CONFIG, 'tool.ts': TOOL, ...files })
  }
  afterEach(() => reloading.host.close({ grace: 0 }))

  it('is replaced with its imports on reload', async () => {
    await start({ 'text.ts': `export const text: string = 'one'` })
    expect(await callText(reloading.host, 'said')).to.equal('one false')
    await reloading.edit('text.ts', 'one', 'two')
    expect(await callText(reloading.host, 'said')).to.equal('one false')
    const { taken, restart } = await reloading.reload()
    expect({ taken, restart }).to.deep.equal({ taken: ['toolsets.all'], restart: [] })
    expect(await callText(reloading.host, 'said')).to.equal('two false')
  })

  it('is reported if loading fails in the process', async () => {
    const text = `import { isMainThread } from 'node:worker_threads'
      if (!isMainThread) throw new Error('not in a thread')
      export const text = 'never'`
    await start({ 'text.ts': text })
    expect(await callText(reloading.host, 'said')).to.equal('said failed')
    const [line] = reloading.log.filter(({ level }) => level === 'error')
    const error = line?.['err'] as Error
    expect(error.message).to.equal('said: its module cannot be loaded in a worker process')
    expect((error.cause as Error).message).to.equal('not in a thread')
  })
})
