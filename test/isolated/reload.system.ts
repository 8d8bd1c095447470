// Tests reloads of isolated tools: their processes load the changed modules.
import { expect } from 'chai'
import { removeFolders } from '../config/folder.ts'
import { type ReloadingHost, startReloading } from '../support/reloading-host.ts'
import { callText } from '../support/steady-load.ts'

after(removeFolders)

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

describe('Isolated tool module', () => {
  let reloading: ReloadingHost
  const start = async (files: Record<string, string>) => {
    reloading = await startReloading({ 'mcp.config.ts': CONFIG, 'tool.ts': TOOL, ...files })
  }
  afterEach(() => reloading.host.close({ grace: 0 }))

  it('is replaced with its imports on reload', async () => {
    await start({ 'text.ts': `export const text: string = 'one'` })
    expect(await callText(reloading.url, 'said')).to.equal('one false')
    await reloading.edit('text.ts', 'one', 'two')
    expect(await callText(reloading.url, 'said')).to.equal('one false')
    const { taken, restart } = await reloading.reload()
    expect({ taken, restart }).to.deep.equal({ taken: ['toolsets.all'], restart: [] })
    expect(await callText(reloading.url, 'said')).to.equal('two false')
  })

  it('is reported if loading fails in the process', async () => {
    const text = `import { isMainThread } from 'node:worker_threads'
      if (!isMainThread) throw new Error('not in a thread')
      export const text = 'never'`
    await start({ 'text.ts': text })
    expect(await callText(reloading.url, 'said')).to.equal('said failed')
    const [line] = reloading.log.filter(({ level }) => level === 'error')
    const error = line?.['err'] as Error
    expect(error.message).to.equal('said: its module cannot be loaded in a worker process')
    expect((error.cause as Error).message).to.equal('not in a thread')
  })
})
