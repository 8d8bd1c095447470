// Apps on a running host: runtime tools, reloads, access rules and testTool.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'chai'
import { createHost } from '../../../core/create-host.ts'
import { defineTool, type ToolDefinition } from '../../../core/index.ts'
import { createTestLog } from '../../../core/testing/test-log.ts'
import { testTool } from '../../../core/testing.ts'
import { defineApp } from '../../../plugins/apps/define-app.ts'
import { makeFolder, removeFolders } from '../../config/folder.ts'
import { withPlugins } from '../../fixtures/plugins.ts'
import { modern } from '../../support/rpc.ts'
import { startHost, stopHosts } from '../../support/start-host.ts'

const PAGE = '<!doctype html><title>A page</title>'
const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition =>
  defineTool({ name, ...more, handler: () => ({ of: name }) }) as unknown as ToolDefinition
const chart = (html = PAGE) => defineApp({ name: 'chart', html })

after(async () => {
  await stopHosts()
  await removeFolders()
})

const read = async (url: string, uri = 'ui://chart/app.html') => (await modern(url, 'resources/read', { uri })).message
const listed = async (url: string): Promise<string[]> =>
  (await modern(url, 'tools/list')).message.result.tools.map(({ name }: { name: string }) => name)

describe('App of a tool added at run time', () => {
  it('is served until its last tool is removed', async () => {
    const { url, host } = await startHost(withPlugins({ apps: {} }))
    expect(await read(url)).to.have.property('error')
    host.runtime.tools.add(tool('one', { app: chart() }))
    host.runtime.tools.add(tool('two', { app: chart() }))
    expect((await read(url)).result.contents[0].text).to.equal(PAGE)
    host.runtime.tools.remove('one')
    host.runtime.tools.remove('two')
    expect(await read(url)).to.have.property('error')
  })

  it('is refused if another app has the same name, and lists still work', async () => {
    const { url, host } = await startHost(
      withPlugins({ apps: {} }, { toolsets: { all: [tool('one', { app: chart() })] } }),
    )
    const other = tool('two', { app: chart(`${PAGE} another`) })
    expect(() => host.runtime.tools.add(other)).to.throw('two different resources are called "ui://chart/app.html"')
    expect(await listed(url)).to.deep.equal(['one'])
    host.runtime.tools.remove('one', { toolset: 'all' })
    host.runtime.tools.add(other)
    expect(await listed(url)).to.deep.equal(['two'])
    expect((await read(url)).result.contents[0].text).to.equal(`${PAGE} another`)
  })

  it('is refused if its definition is invalid', async () => {
    const { url, host } = await startHost(withPlugins({ apps: {} }))
    const wrong = tool('one', { app: { name: 'chart', html: PAGE, csp: { connectDomains: ['*'] } } })
    expect(() => host.runtime.tools.add(wrong)).to.throw('an origin, such as https://api.acme.example')
    expect(await listed(url)).to.deep.equal(['hello'])
  })

  it('returns an internal error and logs the cause if its page cannot be read', async () => {
    const { url, host, log } = await startHost(withPlugins({ apps: {} }))
    host.runtime.tools.add(tool('one', { app: defineApp({ name: 'chart', module: './nowhere.ts' }) }))
    expect((await read(url)).error).to.deep.include({ code: -32603 })
    const [line] = log.filter(({ level }) => level === 'error')
    expect(String((line as { err?: unknown }).err)).to.match(/nowhere\.ts/)
    expect(JSON.stringify((await read(url)).error)).not.to.contain('nowhere')
    expect(await listed(url)).to.deep.equal(['hello', 'one'])
  })
})

describe('App interaction with other features', () => {
  it('access rules: hides the page from callers who cannot call its tool', async () => {
    const closed = tool('closed', { app: chart(), access: 'staff' })
    const plugins = { apps: {}, 'tool-policy': { policies: { staff: { scope: 'staff' } } } }
    const { url } = await startHost(withPlugins(plugins as never, { toolsets: { all: [closed] } }))
    expect((await modern(url, 'resources/list')).message.result.resources).to.deep.equal([])
    expect((await read(url)).error).to.have.property('code')
    expect((await read(url)).result).to.equal(undefined)
  })

  it('testTool: runs the tool without its app', async () => {
    const { structured } = await testTool(tool('one', { app: chart() }))
    expect(structured).to.deep.equal({ of: 'one' })
  })

  it('reload that requires a restart: keeps the previous page', async () => {
    const folder = await makeFolder({ 'page.html': PAGE })
    const config = (http: object) => ({
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0, ...http },
      secrets: ['a secret for tests, long enough to be one'],
      ...withPlugins(
        { apps: {} },
        {
          toolsets: { all: [tool('one', { app: chart('./page.html') })], other: [tool('two', { app: chart() })] },
          routes: { '/': { toolsets: 'all' }, '/other': { toolsets: 'other' } },
        },
      ),
    })
    const host = await createHost(config({}), { log: createTestLog(), directory: folder })
    await host.listen()
    const page = async () => (await read(host.url)).result.contents[0].text
    const reload = (http: object) =>
      host.reload({
        config: config(http),
        isInline: true,
        locate: () => undefined,
        file: join(folder, 'mcp.config.ts'),
        directory: folder,
      } as never)
    try {
      await writeFile(join(folder, 'page.html'), `${PAGE} another`)
      expect((await reload({ writeTimeout: '7s' })).restart).to.deep.equal(['http.writeTimeout'])
      expect(await page()).to.equal(PAGE)
      expect((await reload({})).taken).to.deep.equal(['plugins.apps: ui://chart/app.html'])
      expect(await page()).to.equal(`${PAGE} another`)
      expect((await reload({})).taken).to.deep.equal([])
    } finally {
      await host.close({ grace: 0 })
    }
  })

  it('reload that conflicts with an added tool: fails and keeps the previous version', async () => {
    const config = (html: string) => ({
      server: { name: 'reloaded', version: '1.0.0' },
      http: { port: 0 },
      secrets: ['a secret for tests, long enough to be one'],
      ...withPlugins({ apps: {} }, { toolsets: { all: [tool('one', { app: chart(html) })] } }),
    })
    const host = await createHost(config(PAGE), { log: createTestLog() })
    await host.listen()
    try {
      host.runtime.tools.add(tool('added', { app: chart() }))
      const reload = async (html: string) =>
        host.reload({ config: config(html), isInline: true, locate: () => undefined, file: '', directory: '' } as never)
      const refused = await reload(`${PAGE} another`).then(
        () => 'taken',
        error => String(error),
      )
      expect(refused).to.match(/"ui:\/\/chart\/app\.html"/)
      expect(await listed(host.url)).to.deep.equal(['added', 'one'])
      expect((await read(host.url)).result.contents[0].text).to.equal(PAGE)
      host.runtime.tools.remove('added')
      expect((await reload(`${PAGE} another`)).taken).to.deep.equal(['plugins.apps: ui://chart/app.html'])
      expect((await read(host.url)).result.contents[0].text).to.equal(`${PAGE} another`)
    } finally {
      await host.close({ grace: 0 })
    }
  })
})
