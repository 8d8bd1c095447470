// Tests a module that never finishes during loading, at reload.
import { expect } from 'chai'
import { rejectionOf } from '../fixtures/rejection-of.ts'
import { startReloading, stopReloading } from '../support/reloading-host.ts'
import { modern } from '../support/rpc.ts'
import { removeFolders } from './folder.ts'

const SAY = "import { defineTool } from HERE\nexport const say = defineTool({ name: 'say', handler: () => 'one' })\n"

describe('Module that never finishes loading during a reload', () => {
  after(async () => {
    await stopReloading()
    await removeFolders()
  })

  it('fails the reload, and the next reload is applied', async () => {
    const { url, write, reload } = await startReloading({
      'mcp.config.ts': `export default {
        server: { name: 'loaded', version: '1.0.0' }, http: { port: 0 },
        toolsets: { all: './tools/*.ts' }, routes: { '/': { toolsets: 'all' } }, plugins: { 'transport-streamable': {} },
      }`,
      'tools/say.ts': SAY,
    })
    await write('tools/say.ts', `await new Promise(() => {})\n${SAY}`)
    expect(String(await rejectionOf(reload()))).to.match(/tools\/say\.ts.*has not finished after 30 s/)
    await write('tools/say.ts', SAY.replace("'one'", "'two'"))
    await reload()
    const { message } = await modern(url, 'tools/call', { name: 'say' })
    expect(message.result.content[0].text).to.equal('two')
  })
})
