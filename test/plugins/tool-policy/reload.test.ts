// Tests that a reload with a rule that matches nothing does not open a tool.
import { expect } from 'chai'
import { removeFolders } from '../../config/folder.ts'
import { type ReloadingHost, startReloading, stopReloading } from '../../support/reloading-host.ts'
import { modern } from '../../support/rpc.ts'

const FILE = 'mcp.config.ts'

const configOf = (tools: string, rules: object, plugins = '') => `import { defineConfig, defineTool } from HERE
const tool = (name: string) => defineTool({ name, handler: () => name })
export default defineConfig({
  server: { name: 'reloaded', version: '1.0.0' },
  http: { port: 0 },
  secrets: ['a secret for tests, long enough to be one'],
  toolsets: { all: [${tools
    .split(' ')
    .map(name => `tool('${name}')`)
    .join(', ')}] },
  routes: { '/': { toolsets: ['all'${plugins === '' ? '' : `, 'wiki'`}] } },
  plugins: { 'transport-streamable': {}, ${plugins} 'tool-policy': { rules: ${JSON.stringify(rules)} } },
})
`

const admin = { role: 'admin' }

describe('tool-policy: a reload', () => {
  let served: ReloadingHost
  afterEach(stopReloading)
  after(removeFolders)

  const start = async (tools: string, rules: object, plugins?: string) => {
    served = await startReloading({ [FILE]: configOf(tools, rules, plugins) })
  }
  /** The tools that anonymous callers get after a reload, or the error of the reload. */
  async function reload(tools: string, rules: object, plugins?: string): Promise<string> {
    await served.write(FILE, configOf(tools, rules, plugins))
    const error = await served.reload().then(() => undefined, String)
    const { message } = await modern(served.url, 'tools/list')
    const names = message.result.tools.map(({ name }: { name: string }) => name).join(' ')
    return error === undefined ? names : `${names} ${error}`
  }

  it('is refused if a rule has a typo, also a second time', async () => {
    await start('delete_order get', { delete_order: admin })
    const refused =
      /^get .*rules\.delete_ordr.*matches nothing, and tool "delete_order" would lose a rule; correct the key/s
    expect(await reload('delete_order get', { delete_ordr: admin })).to.match(refused)
    expect(await reload('delete_order get', { delete_ordr: admin })).to.match(refused)
    expect(await reload('delete_order get', { 'delte_*': admin })).to.match(/^get .*would lose a rule/s)
    expect(await reload('delete_order get', { 'prompt:delete_order': admin })).to.match(/^get .*would lose a rule/s)
    expect(await reload('delete_order get', { '*': {}, delete_ordr: admin })).to.match(/^get .*would lose a rule/s)
    expect(await reload('delete_order get purge', { delete_order: admin, purg: admin })).to.match(
      /^get .*"purge" is new/s,
    )
    expect(await reload('delete_order get', { 'delete_*': admin })).to.equal('get')
  })

  it('is refused if a tool of a rule has a new name, also after the tool was removed', async () => {
    await start('delete_order get', { delete_order: admin, '*_secret': admin })
    const rules = { delete_order: admin }
    expect(await reload('remove_order get', rules)).to.match(/^get .*tool "remove_order" is new; correct the key/s)
    expect(await reload('get', rules)).to.equal('get')
    expect(await reload('remove_order get', rules)).to.match(/^get .*tool "remove_order" is new/s)
    expect(await reload('remove_order get', { remove_order: admin })).to.equal('get')
  })

  it('is applied if a tool is removed together with its rule, or a rule is only removed', async () => {
    await start('delete_order get purge', { delete_order: admin, purge: admin })
    expect(await reload('get purge', { purge: admin })).to.equal('get')
    expect(await reload('get purge', {})).to.equal('get purge')
  })

  it('is applied with rules that cannot match yet', async () => {
    await start('get', { 'admin_*': admin, later: admin })
    expect(await reload('get more', { 'admin_*': admin, later: admin, 'drop_*': admin })).to.equal('get more')
    expect(await reload('get more admin_a', { 'admin_*': admin })).to.equal('get more')
  })

  it('is applied with rules in shadow mode, and with rules for servers that are not connected', async () => {
    const plugins = `upstream: { servers: { wiki: { url: 'http://127.0.0.1:1/', prefix: 'wiki_' } } },`
    await start('get', { wiki_delete: { policy: admin, mode: 'shadow' } }, plugins)
    expect(
      await reload('get more', { wiki_delete: admin, nothing: { policy: admin, mode: 'shadow' } }, plugins),
    ).to.equal('get more')
  })
})
