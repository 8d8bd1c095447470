// `mcp-host dev` with apps: rebundling on file changes, and bundling errors.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'chai'
import { editedConfig } from '../../cli/edited-config.ts'
import { CORE, runCli, startCli, stopAll } from '../../cli/run-cli.ts'
import { makeFolder, removeFolders, replaceFile } from '../../config/folder.ts'
import { bundledFile } from '../../support/compiled.ts'
import { modern } from '../../support/rpc.ts'
import { nextMessage, openSession } from '../../support/session-client.ts'

const URI = 'ui://chart/app.html'
const APPS = pathToFileURL(bundledFile('plugins/apps/define-app.ts')).href
const TOOL = `import { defineTool } from '${CORE}'
import { defineApp } from '${APPS}'
const chart = defineApp({ name: 'chart', module: new URL('../page/chart.ts', import.meta.url) })
export const draw = defineTool({ name: 'draw', app: chart, handler: () => ({ n: 1 }) })
`
const FILES = {
  'mcp.config.ts': editedConfig({ tools: './tools/*.ts', path: '/mcp', plugins: 'apps: {}' }),
  'tools/draw.ts': TOOL,
  'page/chart.ts': "import './chart.css'\nimport { mark } from './mark.ts'\ndocument.title = mark\n",
  'page/mark.ts': "export const mark: string = 'one'",
  'page/chart.css': 'body { color: red }',
}

after(async () => {
  await stopAll()
  await removeFolders()
})

describe('mcp-host dev with apps', () => {
  it('rebundles the page when a source file changes and keeps the previous page on errors', async () => {
    const folder = await makeFolder(FILES)
    const write = (name: string, text: string) => replaceFile(join(folder, name), text)
    const running = startCli(['dev'], folder)
    const url = `${await running.listening()}/mcp`
    const page = async () => (await modern(url, 'resources/read', { uri: URI })).message.result.contents[0].text
    expect(await page())
      .to.contain('"one"')
      .and.to.contain('color:red')
    const session = await openSession(url)
    await session.request('resources/subscribe', { uri: URI })
    const stream = await session.get()

    await write('page/mark.ts', "export const mark: string = 'two'")
    await running.printed(/^Changed: page\/mark\.ts\nReloaded: plugins\.apps: ui:\/\/chart\/app\.html/m)
    expect(await page()).to.contain('"two"')
    expect(await nextMessage(stream)).to.deep.include({
      method: 'notifications/resources/updated',
      params: { uri: URI },
    })

    await write('page/chart.css', 'body { color: blue }')
    await running.printed(/^Changed: page\/chart\.css\nReloaded: plugins\.apps: ui:\/\/chart\/app\.html/m)
    expect(await page()).to.contain('color:#00f')

    await write('page/mark.ts', 'export const mark: string =')
    await running.printed(
      /app "chart": its module cannot be bundled:\npage\/mark\.ts:1:28: [\s\S]*\nStill serving the previous version/m,
    )
    expect(await page()).to.contain('"two"')
    await write('page/mark.ts', "export const mark: string = 'three'")
    await running.printed(
      /^Reloaded: plugins\.apps: ui:\/\/chart\/app\.html[\s\S]*^Reloaded: plugins\.apps: ui:\/\/chart\/app\.html[\s\S]*^Reloaded: plugins\.apps: ui:\/\/chart\/app\.html/m,
    )
    expect(await page()).to.contain('"three"')

    await write(
      'tools/draw.ts',
      TOOL.replace("name: 'chart',", "name: 'chart', csp: { connectDomains: ['https://a.example'] },"),
    )
    await running.printed(/^Reloaded: toolsets\.talk, plugins\.apps: ui:\/\/chart\/app\.html/m)
    const [contents] = (await modern(url, 'resources/read', { uri: URI })).message.result.contents
    expect(contents._meta).to.deep.equal({ ui: { csp: { connectDomains: ['https://a.example'] } } })
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })

  it('waits for a fix if the page cannot be bundled at startup', async () => {
    const folder = await makeFolder({ ...FILES, 'page/mark.ts': 'export const mark: string =' })
    const running = startCli(['dev'], folder)
    await running.logged(/tools\/draw\.ts:4: .*app "chart": its module cannot be bundled:\n.*page\/mark\.ts:1:28: /)
    await replaceFile(join(folder, 'page/mark.ts'), FILES['page/mark.ts'])
    const url = `${await running.listening()}/mcp`
    expect((await modern(url, 'resources/read', { uri: URI })).message.result.contents[0].text).to.contain('"one"')
    running.child.kill('SIGTERM')
    expect((await running.ended).code).to.equal(0)
  })

  it('mcp-host check reports bundling errors with file and line', async () => {
    const folder = await makeFolder({ ...FILES, 'page/chart.css': '@import "./none.css";' })
    const { code, stdout, stderr } = await runCli(['check'], folder)
    expect([code, stdout + stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 2 && text.includes('page/chart.css:1:9: Could not resolve'),
    )
  })

  it('bundles in memory, without writing to the project or temporary folder', async () => {
    const config = `export default {
  server: { name: 'bare', version: '1.0.0' }, routes: { '/': { toolsets: 'all' } }, toolsets: { all: './draw.js' },
  plugins: { 'transport-streamable': {}, apps: {} },
}`
    const folder = await makeFolder({
      'mcp.config.js': config,
      'package.json': '{ "type": "module" }',
      'draw.js': TOOL.replace('../page/', './page/'),
      'page/chart.ts': FILES['page/chart.ts'],
      'page/mark.ts': FILES['page/mark.ts'],
      'page/chart.css': FILES['page/chart.css'],
    })
    const temporary = await makeFolder({})
    const files = async () => [...(await readdir(folder, { recursive: true })), ...(await readdir(temporary))].sort()
    const before = await files()
    const { code, stderr } = await runCli(['check'], folder, { TMPDIR: temporary })
    expect(code, stderr).to.equal(0)
    expect(await files()).to.deep.equal(before)
  })
})
