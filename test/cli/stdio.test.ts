// Tests how `mcp-host stdio` applies a config. stdio.system.ts tests processes and official clients.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { expect } from 'chai'
import { type Serving, serveStdio } from '../../cli/stdio.ts'
import { makeFolder, removeFolders } from '../config/folder.ts'
import { QUIET } from '../plugins/transport-stdio/stdio-client.ts'
import { CORE, runCli, stopAll } from './in-process.ts'
import { stdioConfig } from './stdio-config.ts'

const ONE = "{ '/mcp': { toolsets: 'all' } }"
const TWO =
  "{ '/mcp': { toolsets: 'all' }, '/t/:which?': { toolsets: ':which', default: ['other'] }, '/x/:must': { toolsets: ':must' } }"
const TOOLS = "[defineTool({ name: 'noisy', handler: () => 'noise' })]"

const folderOf = (routes = ONE, plugins = "{ 'transport-stdio': { user: { subject: 'ada' } } }") =>
  makeFolder({ 'mcp.config.mjs': stdioConfig({ core: CORE, tools: TOOLS, routes, plugins }) })

const open: Serving[] = []
async function serve(cwd: string, route?: string) {
  const ends = { input: new PassThrough(), output: new PassThrough() }
  const serving = await serveStdio({ config: undefined, route, cwd }, ends, QUIET)
  open.push(serving)
  const answer = once(ends.output, 'data')
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  ends.input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta } })}\n`)
  const { result } = JSON.parse(String((await answer)[0])) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}
const refusalOf = async (folder: string, route?: string) =>
  serve(folder, route).then(
    () => 'served',
    (error: Error & { exitCode?: number }) => `${error.exitCode}: ${error.message}`,
  )

describe('mcp-host stdio', () => {
  after(async () => {
    await Promise.all(open.map(serving => serving.close()))
    await stopAll()
    await removeFolders()
  })

  it('finds the route: the only one, by its path, by a URL of it; and lists the routes otherwise', async () => {
    const [one, two] = [await folderOf(), await folderOf(TWO)]
    expect(await serve(one)).to.include('noisy')
    expect(await serve(one, '/mcp')).to.include('noisy')
    expect(await serve(two, '/t')).to.deep.equal(['other'])
    expect(await serve(two, '/t/:which?')).to.deep.equal(['other'])
    expect(await serve(two, '/t/all')).to.include('noisy')
    const known = 'routes: /mcp, /t/:which?, /x/:must'
    expect(await refusalOf(two)).to.include(`--route; ${known}`)
    expect(await refusalOf(two, '/nowhere'))
      .to.include('2: --route')
      .and.include(known)
    expect(await refusalOf(two, '/x/:must')).to.match(/^2: --route \/x\/:must.*\/x\/all$/)
  })

  it('needs no entry for the plugin, respects `false`, and checks its options with their line', async () => {
    expect(await serve(await folderOf(ONE, '{}'))).to.include('noisy')
    const off = "{ '/mcp': { toolsets: 'all', plugins: { 'transport-streamable': {}, 'transport-stdio': false } } }"
    expect(await refusalOf(await folderOf(off))).to.match(/^2: routes\['\/mcp'\] disables transport-stdio; remove/)
    const wrong = "{ 'transport-stdio': { user: { scopes: ['a'] } } }"
    expect(await refusalOf(await folderOf(ONE, wrong))).to.match(
      /mcp\.config\.mjs:\d+ +plugins\['transport-stdio'\]\.user\.subject\n +MH1012 missing/,
    )
  })

  it('fails closed: it does not serve a route that requires a user without a user in the config', async () => {
    const authorized = "{ '/mcp': { toolsets: 'all', authorize: { scope: 'use' } } }"
    const decider = `by: definePlugin({ options: { type: 'object' }, provides: ['user', 'authorize'], setup() {} })()`
    const folder = await folderOf(authorized, `{ ${decider} }`)
    expect(await refusalOf(folder)).to.match(
      /^2: routes\['\/mcp'\] refuses this client: Authentication required.*; set plugins\['transport-stdio'\]\.user/,
    )
    const known = await folderOf(
      authorized,
      `{ ${decider}, 'transport-stdio': { user: { subject: 'ada', scopes: ['use'] } } }`,
    )
    expect(await serve(known)).to.include('noisy')
  })

  it('prints errors to stderr only', async () => {
    const { code, stdout, stderr } = await runCli(['stdio', '--route', '/no'], await folderOf())
    expect([code, stdout]).to.deep.equal([2, ''])
    expect(stderr).to.include('mcp-host: error MH3001: --route /no: nothing is served there; routes: /mcp\n')
  })
})
