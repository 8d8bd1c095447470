// Tests that examples/openapi serves its API as tools.
import { join } from 'node:path'
import { expect } from 'chai'
import { loadHost } from '../../core/create-host.ts'
import type { Host } from '../../core/host.ts'
import { api } from '../../examples/openapi/api.ts'
import { modern } from '../support/rpc.ts'
import { createTestLog } from '../support/start-host.ts'

describe('examples/openapi', () => {
  const folder = join(import.meta.dirname, '../../examples/openapi')
  let host: Host | undefined
  before(async () => {
    process.env['PORT'] = '0'
    await new Promise<void>(resolve => api.listen(4000, '127.0.0.1', resolve))
    host = await loadHost({ cwd: folder, file: join(folder, 'mcp.config.ts') }, createTestLog())
    await host.listen()
  })
  after(async () => {
    delete process.env['PORT']
    await host?.close({ grace: 0 })
    api.closeAllConnections()
    await new Promise(resolve => api.close(resolve))
  })

  const call = async (name: string, args: object) =>
    (await modern(`${host?.url}/mcp`, 'tools/call', { name, arguments: args })).message.result

  it('serves the operations of its API as tools', async () => {
    expect((await call('addNote', { text: 'Call Ada' })).structuredContent).to.deep.equal({ id: 2, text: 'Call Ada' })
    expect((await call('listNotes', { search: 'Ada' })).structuredContent.notes).to.have.length(1)
    expect((await call('getNote', { id: 1 })).structuredContent.text).to.equal('Buy tea')
    const missing = await call('getNote', { id: 99 })
    expect(missing.isError).to.equal(true)
    expect(missing.content[0].text).to.match(/404.*There is no such note/s)
    expect((await call('addNote', { text: '' })).content[0].text).to.match(/Invalid arguments/)
  })
})
