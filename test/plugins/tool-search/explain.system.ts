// `mcp-host explain` for routes with `search`: listed tools and searchable tools.
import { expect } from 'chai'
import { CORE, runCli, stopAll } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'

after(removeFolders)
after(stopAll)

const CONFIG = `import { defineTool } from '${CORE}'
const tool = (name, access) => defineTool({ name, access, handler: () => name })
export default {
  server: { name: 'explained', version: '1.0.0' },
  toolsets: { all: [tool('list_orders'), tool('get_order'), tool('purge', 'admin')] },
  routes: { '/': { toolsets: 'all', search: { pinned: ['list_*'] } }, '/plain': { toolsets: 'all' } },
  plugins: { 'transport-streamable': {}, 'tool-policy': {} },
}
`

describe('mcp-host explain with `search`', () => {
  let folder: string
  before(async () => {
    folder = await makeFolder({ 'mcp.config.mjs': CONFIG })
  })

  async function explained(...args: string[]): Promise<string[]> {
    const { code, stdout, stderr } = await runCli(['explain', ...args], folder)
    expect(code, stderr).to.equal(0)
    return stdout.split('\n').map(line => line.trim())
  }

  it('shows listed and search-only tools for the route and each tool', async () => {
    const route = await explained()
    expect(route.join('\n')).to.match(/^plugins {3}tool-search: .*3 of 5 .*\(list_orders, find_tools, call_tool\)/m)
    expect(route).to.include.members([
      'tool      list_orders: allowed',
      'tool      get_order: allowed, hidden from lists',
    ])
    const found = await explained('--tool', 'get_order')
    expect(found).to.include('result    allowed, hidden from lists')
    expect(found.join()).to.match(/tools\/list: find_tools.*call_tool/)
    const pinned = await explained('--tool', 'list_orders')
    expect(pinned).to.include('result    allowed, listed')
    expect(pinned.join()).to.contain('tool-search: in tools/list')
    expect((await explained('--tool', 'purge')).join()).to.match(/result {4}denied: .*; hidden from lists; 401/)
  })

  it('shows nothing about search for other routes', async () => {
    const told = (await explained('--route', '/plain')).join()
    expect(told).not.to.contain('tool-search')
    expect(told).to.contain('tool      get_order: allowed,tool')
  })
})
